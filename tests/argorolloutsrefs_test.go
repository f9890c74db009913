package tests

import (
	"context"
	"slices"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

func TestADeploymentIsRolledOnceHoweverManyRunItsPods(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t, programs.Options{ActuatorArgs: []string{"--max-rollouts", "1"}})
	startArgoRollouts(t)
	tests := []struct {
		name string
		// replicas are those of the Deployment itself, at first and when Rollouts run its pods.
		replicas, left int32
		rollouts       []argoRollout
	}{
		{"shared", 0, 0, []argoRollout{{name: "edge", steps: `[{setWeight: 50}, {pause: {}}]`}, {name: "inner"}}},
		{"never", 2, 2, []argoRollout{{name: "never", scaleDown: "never"}}},
		{"onsuccess", 2, 0, []argoRollout{{name: "onsuccess", scaleDown: "onsuccess"}}},
		{"progressively", 2, 0, []argoRollout{{name: "progressively", scaleDown: "progressively"}}},
	}
	var deployments []string
	for _, test := range tests {
		r.secret(test.name, map[string]string{"password": "one"})
		r.deploy(r.reading(test.name, test.name, test.replicas, nil))
		for _, rollout := range test.rollouts {
			rollout.annotations, rollout.workloadRef = `{keyturn.dev/roll-on: auto}`, test.name
			r.createRollout(rollout)
		}
		deployments = append(deployments, "deployment/"+test.name)
	}
	for _, test := range tests {
		for _, rollout := range test.rollouts {
			r.awaitPhase(rollout.name, "Healthy")
		}
		r.eventually("the Deployment "+test.name+" is scaled", func(context.Context) bool {
			return r.deployment(test.name).Status.Replicas == test.left
		})
	}
	r.placeFence()
	r.start()
	r.rolls("a change of each", once(deployments...), func() {
		for _, test := range tests {
			r.secret(test.name, map[string]string{"password": "two"})
		}
	})
	for _, test := range tests[1:] {
		r.outcomeOf(test.name, events.VerbCompleted)
		status, phase := r.deployment(test.name).Status, r.field(test.name, "status", "phase")
		if status.UpdatedReplicas != test.left || status.Replicas != test.left || phase != "Healthy" {
			t.Errorf("%s, when it was completed: %d of %d pods of the Deployment are new, in phase %s", test.name, status.UpdatedReplicas, status.Replicas, phase)
		}
	}
	r.awaitPhase("edge", "Paused")
	r.awaitPhase("inner", "Healthy")
	ended := func(o events.Outcome) bool {
		return o.Workload.Name == "shared" && o.Verb != events.VerbStarted && o.Verb != events.VerbHeld
	}
	if outcomes := r.outcomes(); slices.ContainsFunc(outcomes, ended) {
		t.Errorf("it has ended although one of its Rollouts is paused: %+v", outcomes)
	}
	r.setStatus("edge", `{"pauseConditions":null}`)
	r.outcomeOf("shared", events.VerbCompleted)
	if phase := r.field("edge", "status", "phase"); phase != "Healthy" {
		t.Errorf("phase of the last Rollout when it was completed: got %s, want Healthy", phase)
	}
}
