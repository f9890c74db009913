package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// annotateDeployment sets an annotation of a Deployment. An empty value removes it.
func (r *rig) annotateDeployment(name, annotation, value string) {
	r.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	r.patchDeployment(name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotation, text))
}

// isHeld waits until a workload is held for a reason, with a text.
func (r *rig) isHeld(name, reason, text string) {
	r.Helper()
	r.eventually(name+" is held: "+reason, func(context.Context) bool {
		for _, outcome := range r.told(events.VerbHeld) {
			if outcome.Workload.Name == name && outcome.Reason == reason && strings.Contains(outcome.Message, text) {
				return true
			}
		}
		return false
	})
}

func TestWhatIsOnHoldRollsOnceWithTheLastContentWhenTheHoldIsTakenOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	for _, name := range []string{"db", "cache", "moved"} {
		r.secret(name, map[string]string{"password": "one"})
	}
	r.deploy(r.reading("held", "db", 1, map[string]string{"keyturn.dev/hold": "tofu apply"}))
	// The others of its source wait for it neither as a lower wave nor for its slot.
	r.deploy(r.reading("later", "db", 1, map[string]string{"keyturn.dev/wave": "1"}))
	r.deploy(r.reading("reader", "cache", 1, nil))
	r.deploy(r.reading("moved", "moved", 1, nil))
	r.annotateNamespace("keyturn.dev/hold", `"moving"`)
	r.start()

	r.step("a namespace on hold holds its workloads over a restart", (*rig).holdsANamespace)
	r.step("a hold on a workload and one on a source outlast a restart", (*rig).holdsAWorkloadAndASource)
}

// holdsAWorkloadAndASource has the Deployment held on hold, and the Secret cache, which the Deployment reader reads.
func (r *rig) holdsAWorkloadAndASource() {
	r.Helper()
	before := r.tally()
	want := func(what string, want tally) {
		r.Helper()
		if diff := cmp.Diff(want, r.tally().since(before)); diff != "" {
			r.Errorf("%s: rollouts (-want +got):\n%s", what, diff)
		}
	}

	r.annotate(events.KindSecret, "cache", "keyturn.dev/hold", "migration until Monday")
	r.eventually("the watcher tells of the hold", func(context.Context) bool {
		return r.lastChange(events.Source{Kind: events.KindSecret, Name: "cache"}).Hold == "migration until Monday"
	})
	r.set(events.KindSecret, "db", "password", "two")
	r.set(events.KindSecret, "cache", "password", "two")
	r.isHeld("held", "on-hold", "tofu apply")
	r.isHeld("reader", "on-hold", "secret/cache: migration until Monday")
	r.outcomeOf("later", events.VerbCompleted)
	want("on hold", once("deployment/later"))
	if got := r.explain("deployment/held"); !strings.Contains(got, "It is on hold: tofu apply (on-hold).") {
		r.Errorf("explain says\n%s", got)
	}
	if got := r.explain("deployment/reader"); !strings.Contains(got, "hold (on-hold): somebody has put the source on hold: migration until Monday") {
		r.Errorf("explain says\n%s", got)
	}
	r.eventually("Kubernetes Events say so", func(context.Context) bool {
		return len(r.kubeEvents("held", "RolloutHeld")) == 1 && len(r.kubeEvents("reader", "RolloutHeld")) == 1
	})

	// What waits, waits on the stream: it is there after a restart of the actuator, and then changes once more.
	r.stop(r.actuator)
	r.startActuator()
	r.set(events.KindSecret, "db", "password", "three")
	r.set(events.KindSecret, "cache", "password", "three")
	r.eventually("the other one is rolled for the last content", func(context.Context) bool { return r.seen().since(before)["deployment/later"] == 2 })
	r.annotateDeployment("held", "keyturn.dev/hold", "")
	r.annotate(events.KindSecret, "cache", "keyturn.dev/hold", nil)
	for name, source := range map[string]string{"held": "db", "reader": "cache"} {
		r.eventually(name+" is rolled", func(context.Context) bool { return r.seen().since(before)["deployment/"+name] > 0 })
		r.hasRolledForTheLast("deployment/"+name, events.Source{Kind: events.KindSecret, Name: source})
	}
	r.quiet()
	want("when the holds are taken off", tally{"deployment/held": 1, "deployment/later": 2, "deployment/reader": 1})
}
