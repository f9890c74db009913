package tests

import (
	"context"
	"slices"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

func TestAnAbortedRolloutIsHeldUntilSomeoneLiftsTheAbort(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t, programs.Options{})
	startArgoRollouts(t)
	r.secret("db", map[string]string{"password": "one"})
	r.createRollout(argoRollout{name: "web", secret: "db", steps: `[{setWeight: 50}, {pause: {}}]`, annotations: `{keyturn.dev/roll-on: auto}`})
	r.createRollout(argoRollout{
		name: "restarted", secret: "db", steps: `[{setWeight: 50}, {pause: {}}]`,
		annotations: `{keyturn.dev/roll-on: auto, reloader.stakater.com/rollout-strategy: restart}`,
	})
	r.awaitPhase("web", "Healthy")
	r.awaitPhase("restarted", "Healthy")
	r.deploy(r.reading("next", "db", 1, map[string]string{"keyturn.dev/wave": "1"}))
	// What is aborted is a change of someone else's.
	for _, name := range []string{"web", "restarted"} {
		r.setSpec(name, `{"template":{"metadata":{"annotations":{"example.com/release":"2"}}}}`)
		r.awaitPhase(name, "Paused")
		r.setStatus(name, `{"abort":true}`)
		r.awaitPhase(name, "Degraded")
	}
	r.start()
	r.secret("db", map[string]string{"password": "two"})

	if held := r.outcomeOf("web", events.VerbHeld); held.Reason != "rollout-aborted" {
		t.Errorf("reason why it is held: got %s (%s), want rollout-aborted", held.Reason, held.Message)
	}
	r.outcomeOf("next", events.VerbCompleted) // Nobody waits for a workload that waits for people.
	if done := r.outcomeOf("restarted", events.VerbCompleted); done.Reason != "rolled-out" {
		t.Errorf("the one whose pods are restarted: got %s (%s), want rolled-out", done.Reason, done.Message)
	}
	r.eventually("the gauge counts it", func(context.Context) bool {
		return r.series(r.actuator, "keyturn_workloads_held", `reason="rollout-aborted"`) == "1"
	})
	text := r.ask("explain", "rollout/web", "-n", r.namespace, "--argo-rollouts")
	for _, words := range [][]string{{"It has been held since", "(rollout-aborted)"}, {"secret/db", "hold (rollout-aborted): ", "abort"}} {
		if len(lines(text, words...)) != 1 {
			t.Errorf("explain does not say %q:\n%s", words, text)
		}
	}
	for _, name := range []string{"web", "restarted"} {
		if sets, phase := r.replicaSets(name), r.field(name, "status", "phase"); sets != 2 || phase != "Degraded" {
			t.Errorf("%s: got %d ReplicaSets in phase %s, want 2 in Degraded, as it was aborted", name, sets, phase)
		}
	}

	// As `kubectl argo rollouts retry` does, which leaves the field there.
	r.setStatus("web", `{"abort":false}`)
	r.eventually("it is rolled", func(context.Context) bool { return r.replicaSets("web") == 3 })
	// The phase says Paused before the step's pause is written, too: what is promoted then pauses again.
	r.eventually("it is promoted and complete", func(context.Context) bool {
		if r.field("web", "status", "phase") == "Paused" {
			r.setStatus("web", `{"pauseConditions":null}`)
		}
		return slices.ContainsFunc(r.outcomes(), func(o events.Outcome) bool { return o.Workload.Name == "web" && o.Verb == events.VerbCompleted })
	})
	started := 0
	for _, outcome := range r.outcomes() {
		if outcome.Workload.Name == "web" && outcome.Verb == events.VerbStarted {
			started++
		}
	}
	if started != 1 {
		t.Errorf("it was rolled %d times, want once", started)
	}
}
