package notify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

func heldFor(reason string) events.Outcome {
	o := outcome(events.VerbHeld, "shop", "r1")
	o.Reason = reason
	return o
}

func TestASinkIsToldOfTheWaitsThatItWants(t *testing.T) {
	tests := []struct {
		name, fields string
		want         []string
	}{
		{"by default of those that people can end", "", []string{"peer-failed", "of-a-later-version"}},
		{"of those that it names", "heldReasons: [limit-reached, on-hold]", []string{"limit-reached"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			configs, err := parseConfig([]byte("sinks: [{name: a, type: slack, url: 'https://x.example/', " + tt.fields + "}]"))
			if err != nil {
				t.Fatal(err)
			}
			sink, err := newSink(configs[0], newClient(nil))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, reason := range []string{"limit-reached", "namespace-limit-reached", "rolled-recently", "peer-failed", "of-a-later-version"} {
				if sink.wants(heldFor(reason)) {
					got = append(got, reason)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("told of (-want +got):\n%s", diff)
			}
			failed := heldFor("limit-reached")
			if failed.Verb = events.VerbFailed; !sink.wants(failed) {
				t.Error("a failure is left out for its reason")
			}
		})
	}
}

// Chat is louder than a Kubernetes Event.
func TestAWaitThatHasNoKubernetesEventHasNoMessageByDefault(t *testing.T) {
	want := map[string]bool{}
	for _, reason := range plan.Reasons() {
		if reason.Action() == plan.Hold && !reason.Silent() {
			want[reason.String()] = plan.Loud(reason.String())
		}
	}
	if diff := cmp.Diff(want, heldReasons); diff != "" {
		t.Errorf("reasons to wait, and which are reported by default (-want +got):\n%s", diff)
	}
}
