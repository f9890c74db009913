package tests

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
)

// A tool that replaces a workload while its rollout is in progress brings back pods with the content of before.
func TestAToolThatReplacesAWorkloadDuringItsRolloutLosesNoChange(t *testing.T) {
	t.Parallel()
	helm, kubectl := tool(t, build.Helm), tool(t, build.Kubectl)
	r := newGitopsRig(t, []gitopsApp{
		{way: "Helm replaces", name: "helm", tool: byHand{
			binary: helm, chart: true, first: []string{"install"}, next: []string{"upgrade", "--server-side=false", "--force-replace"},
		}},
		{way: "kubectl replaces", name: "kubectl", tool: byHand{binary: kubectl, first: []string{"create"}, next: []string{"replace"}}},
		{way: "kubectl recreates", name: "recreated", tool: byHand{binary: kubectl, first: []string{"create"}, next: []string{"replace", "--force"}}},
	}, programs.Options{NATSURL: startOutsideNATS(t).URL()})
	r.annotations = ", keyturn.dev/roll-on: auto"
	r.change()
	r.install()
	r.placeFence()
	r.startWatcher()
	r.runAt(&shiftedClock{}, func(o *actuate.Options) {
		o.RevertDelays = [...]time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond}
	})

	for _, app := range r.apps {
		// No rollout is complete before the tool takes this back, too.
		slow := []byte(`{"spec":{"minReadySeconds":500}}`)
		_, err := r.client.AppsV1().Deployments(r.namespace).Patch(t.Context(), app.name, types.MergePatchType, slow, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The one that is recreated is a new Deployment, which was created, as the other was.
	want := tally{"deployment/helm": 3, "deployment/kubectl": 3}
	r.rolls("each is rolled, taken back and rolled again", want, func() {
		before := r.tally()
		r.change()
		r.eventually("all are rolled", func(context.Context) bool {
			return r.tally().since(before).covers(once("deployment/helm", "deployment/kubectl", "deployment/recreated"))
		})
		r.release("nothing has changed")
		r.quiet()
	})
	got := map[string]map[events.Verb]int{"helm": {}, "kubectl": {}, "recreated": {}}
	for _, outcome := range r.outcomes() {
		if of := got[outcome.Workload.Name]; of != nil && outcome.Verb != events.VerbSkipped {
			of[outcome.Verb]++
		}
	}
	repeated := map[events.Verb]int{events.VerbStarted: 2, events.VerbFailed: 1, events.VerbCompleted: 1}
	wantOutcomes := map[string]map[events.Verb]int{"helm": repeated, "kubectl": repeated, "recreated": {events.VerbStarted: 1}}
	if diff := cmp.Diff(wantOutcomes, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	r.rolls("the next change rolls each once", once("deployment/helm", "deployment/kubectl", "deployment/recreated"), r.change)
}
