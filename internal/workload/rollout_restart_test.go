package workload

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/tests/testkit"
)

// restarting reads a Rollout that asks for restarts, with a restartAt and a status.
func restarting(t *testing.T, annotations, restartAt, status string) *Workload {
	t.Helper()
	spec := `{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","envFrom":[{"secretRef":{"name":"db"}}]}]}}`
	if restartAt != "" {
		spec += `,"restartAt":"` + restartAt + `"`
	}
	return readAs(t, ArgoRollout(), rolloutOf(t, `{"metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7","generation":1,
		"annotations":{"keyturn.dev/roll-on":"auto","reloader.stakater.com/rollout-strategy":"restart"`+annotations+`}},
		"spec":`+spec+`},"status":`+status+`}`), Reading{})
}

func TestARolloutIsRestartedByTheClockOfTheAPIServer(t *testing.T) {
	seen := time.Date(2026, 3, 4, 5, 6, 7, 800, time.UTC)
	wrote := func(at time.Time) Change {
		return Change{Source: db, At: at, Written: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	}
	tests := []struct {
		name, held, touched string
		change              Change
		want                string
	}{
		{"a pod of the same second may be older than the change", "", "", wrote(seen), "2026-03-04T05:06:08Z"},
		{"the clock of who saw the change is ahead", "", "", wrote(seen.Add(time.Hour)), "2026-03-04T05:06:08Z"},
		{"the Rollout was written later, and so maybe pods started", "", "2026-03-04T05:09:00Z", wrote(seen), "2026-03-04T05:09:01Z"},
		{"a restart of the same second", "2026-03-04T05:06:08Z", "", wrote(seen), "2026-03-04T05:06:09Z"},
		{"a later restart, which is not called off", "2026-03-05T07:00:00+02:00", "", wrote(seen), "2026-03-05T05:00:01Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := restarting(t, "", test.held, `{}`)
			if test.touched != "" {
				w = restarting(t, `},"managedFields":[{"manager":"a","time":"2026-03-04T04:00:00Z"},{"manager":"b","subresource":"status","time":"`+
					test.touched+`"}],"labels":{`, test.held, `{}`)
			}
			write := Write{
				Rolls: true, Changes: []Change{test.change}, Cause: "secret/db",
				Rolled: map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "9", UID: "u"}},
			}
			patch := patchFor(t, ArgoRollout(), w, write)
			again, err := ArgoRollout().Patch(w, write)
			if err != nil || string(again.Body) != string(patch.Body) {
				t.Errorf("the patch made again is another (%v):\n%s\n%s", err, patch.Body, again.Body)
			}
			operations := operationsIn(t, patch)
			var held any
			if test.held != "" {
				held = test.held
			}
			for _, want := range []operation{{"test", "/spec/restartAt", held}, add("/spec/restartAt", test.want)} {
				if !slices.Contains(operations, want) {
					t.Errorf("the patch has no %+v:\n%s", want, patch.Body)
				}
			}
			if i := slices.IndexFunc(operations, func(o operation) bool { return len(o.Path) > 14 && o.Path[:14] == "/spec/template" }); i >= 0 {
				t.Errorf("the patch changes the pod template: %+v", operations[i])
			}
		})
	}
}

func TestTheProgressOfARestartIsHowFarTheControllerHasCome(t *testing.T) {
	const at = "2026-03-04T05:06:08Z"
	tests := []struct {
		name, restartAt, status string
		want                    State
	}{
		{"the controller has not looked", at, `{"phase":"Healthy","restartedAt":"` + at + `"}`, Progressing},
		{"no pod was restarted yet", at, `{"observedGeneration":"1","phase":"Progressing"}`, Progressing},
		{"all pods are new", at, `{"observedGeneration":"1","phase":"Healthy","restartedAt":"` + at + `"}`, Complete},
		{"the controller has given up", at, `{"observedGeneration":"1","phase":"Degraded","restartedAt":"` + at + `"}`, Failed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := restarting(t, "", test.restartAt, test.status).Progress; got.State != test.want {
				t.Errorf("got state %d (%s), want %d", got.State, got.Message, test.want)
			}
		})
	}
}

func TestARestartThatIsScheduledIsWaitedFor(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC)
	const healthy = `{"observedGeneration":"1","phase":"Progressing","updatedReplicas":1,"availableReplicas":1}`
	p := restarting(t, "", at.Format(time.RFC3339), healthy).Progress
	if !p.Waits(at.Add(-time.Second)) || p.Waits(at) {
		t.Errorf("a second before, and at the time: it waits: %t, %t, want only before", p.Waits(at.Add(-time.Second)), p.Waits(at))
	}
	touched := `},"managedFields":[{"manager":"actuator","time":"2026-03-04T05:06:07Z"}],"labels":{`
	if p = restarting(t, touched, at.Format(time.RFC3339), healthy).Progress; p.Waits(at.Add(-time.Hour)) {
		t.Error("a restart for a change, which comes a second after it was written, is waited for where the clock is behind")
	}
	if p = restarting(t, touched, at.Add(time.Hour).Format(time.RFC3339), healthy).Progress; !p.Waits(at) {
		t.Error("a restart that comes an hour after it was written is not waited for")
	}
	if p = restarting(t, "", "", healthy).Progress; p.Waits(time.Time{}) {
		t.Error("without a restart it waits for one")
	}
}

func TestAnotherStrategyTakesNoRollBack(t *testing.T) {
	record := `{"secret/db":"` + fp("a") + `@9/u#*"}`
	rolled := revisionOf(record, "")
	const at = "2026-03-04T05:06:08Z"
	tests := []struct {
		name string
		// strategy is the current one; own and template are the revisions on the Rollout and on its pod template.
		strategy, own, template, restartAt string
		want                               string
	}{
		{"restart, after a roll by the template", "restart", "", rolled, "", rolled},
		{"restart, after a roll by the template and a restart by hand", "restart", "", rolled, at, rolled},
		{"none, after a restart that was called off", "rollout", rolled, "r0", "", "r0"},
		{"restart, and the template was taken back", "restart", "", "r0", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := rolloutOf(t, `{"metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7","generation":1},
				"spec":{"template":{"metadata":{"labels":{"app":"web"}}}},"status":{}}`)
			set := func(value any, fields ...string) {
				if value == "" {
					return
				}
				testkit.Must(t, unstructured.SetNestedField(object.Object, value, fields...))
			}
			set(test.strategy, "metadata", "annotations", annotationRolloutStrategy)
			set(record, "metadata", "annotations", annotationRolled)
			set(test.own, "metadata", "annotations", annotationRevision)
			set(test.template, "spec", "template", "metadata", "annotations", annotationRevision)
			set(test.restartAt, "spec", "restartAt")
			w := readAs(t, ArgoRollout(), object, Reading{})
			if w.Revision != test.want {
				t.Errorf("got revision %q, want %q", w.Revision, test.want)
			}
		})
	}
}
