package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// argoCase is a Rollout that reads a Secret of its own, of the same name, which changes once.
type argoCase struct {
	// rollout has no Secret yet.
	rollout argoRollout
	// before is done when its first pods are there.
	before func(r *argoRig, name string)
	// waits says that it waits until somebody has it go on. A Deployment of a later wave that reads the Secret does not wait for it.
	waits bool
	goOn  func(r *argoRig, name string)
	// verb and reason are those of its end.
	verb   events.Verb
	reason string
}

func argoCases() []argoCase {
	promote := func(r *argoRig, name string) { r.setStatus(name, `{"pauseConditions":null}`) }
	abort := func(r *argoRig, name string) { r.setStatus(name, `{"abort":true}`) }
	spec := func(text string) func(*argoRig, string) {
		return func(r *argoRig, name string) { r.setSpec(name, text) }
	}
	remove := func(r *argoRig, name string) {
		testkit.Must(r, r.custom.Delete(r.Context(), name, metav1.DeleteOptions{}))
	}
	const (
		auto    = `{keyturn.dev/roll-on: auto}`
		restart = `{keyturn.dev/roll-on: auto, reloader.stakater.com/rollout-strategy: restart}`
		halfWay = `[{setWeight: 50}, {pause: {}}]`
		later   = `{"restartAt":"2100-01-01T00:00:00Z"}`
		manual  = `{blueGreen: {activeService: manual-active, previewService: manual-preview, autoPromotionEnabled: false, scaleDownDelaySeconds: 1}}`
	)
	restartNow := func(r *argoRig, name string) {
		r.setSpec(name, `{"restartAt":"`+time.Now().UTC().Format(time.RFC3339)+`"}`)
	}
	return []argoCase{
		{
			rollout: argoRollout{name: "manual", annotations: auto, strategy: manual},
			waits:   true, goOn: promote, verb: events.VerbCompleted, reason: "rolled-out",
		},
		{
			rollout: argoRollout{name: "no-weight", annotations: auto, steps: `[{setWeight: 0}, {pause: {}}]`},
			waits:   true, goOn: promote, verb: events.VerbCompleted, reason: "rolled-out",
		},
		{
			rollout: argoRollout{name: "paused", annotations: auto}, before: spec(`{"paused":true}`),
			waits: true, goOn: spec(`{"paused":false}`), verb: events.VerbCompleted, reason: "rolled-out",
		},
		{rollout: argoRollout{name: "scaled-down", annotations: auto, more: "replicas: 0"}, verb: events.VerbCompleted, reason: "rolled-out"},
		{
			rollout: argoRollout{name: "half-way", annotations: auto, steps: halfWay},
			waits:   true, goOn: promote, verb: events.VerbCompleted, reason: "rolled-out",
		},
		{
			rollout: argoRollout{name: "aborted", annotations: auto, steps: halfWay},
			waits:   true, goOn: abort, verb: events.VerbFailed, reason: "aborted",
		},
		{
			rollout: argoRollout{name: "deleted", annotations: auto, steps: halfWay},
			waits:   true, goOn: remove, verb: events.VerbSkipped, reason: "workload-gone",
		},
		{
			rollout: argoRollout{name: "restarted-later", annotations: auto}, before: spec(later),
			verb: events.VerbCompleted, reason: "rolled-out",
		},
		{
			rollout: argoRollout{name: "to-restart-later", annotations: restart}, before: spec(later),
			waits: true, goOn: restartNow, verb: events.VerbCompleted, reason: "rolled-out",
		},
	}
}

func TestRolloutsThatWaitHoldNobodyAndEndAsTheirPhaseSays(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t, programs.Options{ActuatorArgs: []string{"--max-rollouts", "1", "--rollout-timeout", "30s"}})
	startArgoRollouts(t)
	r.createServices()
	cases := argoCases()
	for _, c := range cases {
		r.secret(c.rollout.name, map[string]string{"password": "one"})
		c.rollout.secret = c.rollout.name
		r.createRollout(c.rollout)
		r.deploy(r.reading("after-"+c.rollout.name, c.rollout.name, 1, map[string]string{"keyturn.dev/wave": "1"}))
	}
	r.secret("stuck", map[string]string{"password": "one"})
	stuck := r.reading("stuck", "stuck", 1, nil)
	stuck.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/nowhere": "true"}
	if _, err := r.client.AppsV1().Deployments(r.namespace).Create(t.Context(), stuck, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		r.awaitPhase(c.rollout.name, "Healthy")
		if c.before != nil {
			c.before(r, c.rollout.name)
		}
	}
	r.start()
	for _, c := range cases {
		r.secret(c.rollout.name, map[string]string{"password": "two"})
	}
	for _, c := range cases {
		if c.waits {
			r.outcomeOf("after-"+c.rollout.name, events.VerbCompleted)
		}
	}
	// What makes no progress, and does not wait, begins later and times out.
	r.secret("stuck", map[string]string{"password": "two"})
	if failed := r.outcomeOf("stuck", events.VerbFailed); failed.Reason != "timed-out" {
		t.Errorf("reason of the failure: got %s, want timed-out", failed.Reason)
	}
	outcomes := r.outcomes()
	for _, c := range cases {
		ended := slices.IndexFunc(outcomes, func(o events.Outcome) bool {
			return o.Workload.Name == c.rollout.name && o.Verb != events.VerbHeld && o.Verb != events.VerbStarted
		})
		if c.waits && ended >= 0 {
			t.Errorf("%s has ended while it waited: %s (%s: %s)", c.rollout.name, outcomes[ended].Verb, outcomes[ended].Reason, outcomes[ended].Message)
		}
		if c.goOn != nil {
			c.goOn(r, c.rollout.name)
		}
	}
	for _, c := range cases {
		r.sub(c.rollout.name, func(sub *rig) {
			if end := sub.outcomeOf(c.rollout.name, c.verb); end.Reason != c.reason {
				sub.Errorf("reason: got %s (%s), want %s", end.Reason, end.Message, c.reason)
			}
		})
	}
}

// createServices creates the Services of the case with a blue/green strategy.
func (r *argoRig) createServices() {
	r.Helper()
	manifest := ""
	for _, role := range []string{"active", "preview"} {
		manifest += fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: manual-%[2]s, namespace: %[1]s}
spec: {ports: [{port: 80}], selector: {app: manual}}
`, r.namespace, role)
	}
	testkit.Must(r, plane.ApplyYAML(r.Context(), strings.NewReader(manifest)))
}
