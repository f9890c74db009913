//go:build !race

package actuate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAChangeThatNeedsNothingIsToldAtOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db#password"))
		s.begin("secret/db")
		s.wantWrites("web recorded")
		s.set("secret/db", "user", "two")
		s.pass(s.options.Settle / 2)
		s.wantTold("web skipped keys-not-consumed")
		s.pass(time.Hour)
		s.wantNothing()
	})
}

func TestWhatCameAndWentWhileNobodyLedIsRecordedAndNotTold(t *testing.T) {
	play(t, func(s *scene) {
		first := s.beginWeb()
		s.wantWrites("web recorded")
		first.stop()
		s.set("secret/db", "password", "two")
		s.set("secret/db", "password", "one")
		s.start()
		s.pass(time.Hour)
		s.wantWrites("web recorded") // that it was decided
		s.wantRecord("web", "secret/db")
		s.wantTold()
	})
}

// A tenant creates and deletes one new name after the other, and a workload that reads all of them waits.
func TestNamesThatComeAndGoWhileAWorkloadWaitsAreForgotten(t *testing.T) {
	const count = 100
	play(t, func(s *scene) {
		s.workload("web", on("configmap/*, secret/db"), onHold, reads("secret/db"))
		s.start()
		s.pass(time.Second)
		s.appear("configmap/stays")
		s.settle()
		s.wantTold("web held on-hold")
		var want []string
		for i := range count {
			name := fmt.Sprintf("configmap/churned-%d", i)
			s.appear(name)
			s.pass(time.Second)
			s.erase(name)
			s.pass(time.Second)
			want = append(want, "web skipped source-deleted")
		}
		s.wantTold(want...)
		s.wantWrites("web recorded") // that it waits for the one that stays
		s.edit("web", letGo)
		s.settle()
		s.wantRolls("web")
		s.wantTold("web started appeared", "web completed rolled-out")
		all := s.outcomesSoFar()
		var causes []string
		for _, cause := range all[len(all)-1].Sources {
			causes = append(causes, cause.Source)
		}
		if diff := cmp.Diff([]string{"configmap/stays"}, causes); diff != "" {
			s.Errorf("it was rolled for (-want +got):\n%s", diff)
		}
		// When the last source is gone, it has nothing to wait for.
		s.edit("web", onHold)
		s.appear("configmap/last")
		s.settle()
		s.wantTold("web held on-hold")
		s.erase("configmap/last")
		s.pass(time.Minute)
		s.wantTold("web skipped source-deleted")
		s.edit("web", letGo)
		s.pass(time.Hour)
		s.wantNothing()
	})
}

// The content comes back while the pods get the other one, and the record still says that they have it.
func TestNothingIsConcludedWhileAPatchIsUnderWay(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.patchesTake("web", 5*time.Second)
		s.set("secret/db", "password", "two")
		s.settle()
		s.set("secret/db", "password", "one")
		s.pass(time.Minute)
		s.wantRolls("web")
		s.wantRecord("web", "secret/db")
		s.restart()
		s.pass(time.Minute)
		s.wantWrites()
	})
}
