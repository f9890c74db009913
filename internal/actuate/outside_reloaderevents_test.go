//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestReloadersKubernetesEventsAreWrittenBesideOurs(t *testing.T) {
	denied := apierrors.NewForbidden(appsv1.Resource("statefulsets"), "web", errors.New("no"))
	tests := []struct {
		name, workload string
		happens        func(*scene)
		// want has the messages of Reloader's.
		want []string
	}{
		{
			"one for each source of a rollout, and none for its end", "statefulset/web",
			func(s *scene) {
				s.set("configmap/app", "password", "two")
				s.set("secret/db", "password", "two")
			},
			[]string{
				"Normal Reloaded Changes detected in 'app' of type 'CONFIGMAP' in namespace 'shop', Updated 'web' of type 'StatefulSet' in namespace 'shop'",
				"Normal Reloaded Changes detected in 'db' of type 'SECRET' in namespace 'shop', Updated 'web' of type 'StatefulSet' in namespace 'shop'",
				"Normal Rolled", "Normal RolloutCompleted",
			},
		},
		{
			"one for a patch that is denied", "statefulset/web",
			func(s *scene) {
				s.refuse("statefulset/web", denied)
				s.set("secret/db", "password", "two")
			},
			[]string{
				"Warning ReloadFail Update for 'web' of type 'StatefulSet' in namespace 'shop' failed with error " +
					"patching statefulset/web in namespace shop: " + denied.Error(),
				"Warning RolloutFailed",
			},
		},
		{
			"none for pods that do not become ready", "web",
			func(s *scene) {
				s.stall("web")
				s.settled("secret/db", "password", "two")
				s.fail("web")
			},
			[]string{
				"Normal Reloaded Changes detected in 'db' of type 'SECRET' in namespace 'shop', Updated 'web' of type 'Deployment' in namespace 'shop'",
				"Normal Rolled", "Warning RolloutFailed",
			},
		},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.Reloader = true
			s.workload(tt.workload, auto, reads("secret/db", "configmap/app"))
			s.begin("secret/db", "configmap/app")
			tt.happens(s)
			s.pass(2 * time.Minute)
			var got []string
			for _, event := range s.kubernetesEvents() {
				text := event.Type + " " + event.Reason
				if event.Reason == "Reloaded" || event.Reason == "ReloadFail" {
					text += " " + event.Message
				}
				got = append(got, text)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				s.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
