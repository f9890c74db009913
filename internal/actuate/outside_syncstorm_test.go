//go:build !race

package actuate_test

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
)

// Before the first sync, as many patches are under way as may be, and before the second, as many rollouts are in progress.
func TestNoStormOfRolloutsDelaysASync(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.syncs("db")
		var crowds []string
		for _, of := range []string{namespace, "bank", "office"} {
			crowds = append(crowds, makeCrowd(s, of, 100)...)
		}
		for _, name := range crowds {
			s.stall(name)
		}
		s.begin("secret/db")
		client := s.lastClient()
		s.intercept("patch", "deployments", func(k8stesting.Action) (bool, runtime.Object, error) {
			client.Unlock() // Unlike an API server, the client answers one request at a time.
			<-time.After(10 * time.Second)
			client.Lock()
			return false, nil, nil
		})
		for _, of := range []string{namespace, "bank", "office"} {
			s.set(of+"/secret/crowd", "password", "two")
		}
		for _, version := range []int64{2, 3} {
			s.pass(5 * time.Second)
			s.send(rotated(version))
			s.pass(500 * time.Millisecond)
			s.set("secret/db", "password", strconv.FormatInt(version, 10)) // The sync has written it.
			s.pass(2 * time.Minute)
		}
		if rolled := len(s.whoRolled()); rolled == 0 || rolled == len(crowds) {
			s.Errorf("%d workloads were rolled, want some, and others to wait", rolled)
		}
		if count, sum := seen.spent("keyturn.sync.duration"); count != 2 || sum > 2 {
			s.Errorf("%d syncs took %v s, want 2 and less than a second each", count, sum)
		}
	})
}
