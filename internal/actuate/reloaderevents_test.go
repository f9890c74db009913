package actuate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
)

func TestReloadersKubernetesEventsAreWrittenBesideOurs(t *testing.T) {
	sources := []events.OutcomeSource{{Source: "configmap/app"}, {Source: "secret/db"}}
	tests := []struct {
		name    string
		outcome events.Outcome
		want    []string
	}{
		{
			"one for each source of a rollout",
			events.Outcome{Verb: events.VerbStarted, Reason: "content-changed", Sources: sources},
			[]string{
				"Normal Reloaded Changes detected in 'app' of type 'CONFIGMAP' in namespace 'shop', Updated 'web' of type 'StatefulSet' in namespace 'shop'",
				"Normal Reloaded Changes detected in 'db' of type 'SECRET' in namespace 'shop', Updated 'web' of type 'StatefulSet' in namespace 'shop'",
				"Normal Rolled content-changed",
			},
		},
		{
			"one for a patch that is given up",
			events.Outcome{Verb: events.VerbFailed, Reason: events.ReasonPatchDenied, Message: "no", Sources: sources},
			[]string{
				"Warning ReloadFail Update for 'web' of type 'StatefulSet' in namespace 'shop' failed with error no",
				"Warning RolloutFailed patch-denied: no",
			},
		},
		{
			"none for pods that do not become ready",
			events.Outcome{Verb: events.VerbFailed, Reason: "deadline-exceeded", Sources: sources},
			[]string{"Warning RolloutFailed deadline-exceeded"},
		},
		{
			"none for the end of a rollout",
			events.Outcome{Verb: events.VerbCompleted, Reason: "rolled-out", Sources: sources},
			[]string{"Normal RolloutCompleted rolled-out"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := kubeEventsOf(fake.NewClientset(), nil)
			k.asReloader = true
			tt.outcome.Workload = events.Workload{Kind: "statefulset", Namespace: "shop", Name: "web", UID: "u"}
			k.report(t.Context(), tt.outcome)
			var got []string
			for event := k.waiting(); event != nil; event = k.waiting() {
				got = append(got, event.Type+" "+event.Reason+" "+event.Message)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
