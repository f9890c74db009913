package workload

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// restarting reads a Rollout that asks for restarts, with a restartAt and a status.
func restarting(t *testing.T, annotations, restartAt, status string) *Workload {
	t.Helper()
	spec := `{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","envFrom":[{"secretRef":{"name":"db"}}]}]}}`
	if restartAt != "" {
		spec += `,"restartAt":"` + restartAt + `"`
	}
	w, ok := Read(ArgoRollout(), rolloutOf(t, `{"metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7","generation":1,
		"annotations":{"keyturn.dev/roll-on":"auto","reloader.stakater.com/rollout-strategy":"restart"`+annotations+`}},
		"spec":`+spec+`},"status":`+status+`}`), Reading{})
	if !ok {
		t.Fatal("it cannot be read")
	}
	return w
}

func TestARolloutIsRestartedAtTheTimeOfTheChange(t *testing.T) {
	change := time.Date(2026, 3, 4, 5, 6, 7, 800, time.UTC)
	tests := []struct {
		name, held string
		change     time.Time
		want       string
	}{
		{"a pod of the same second may be older than the change", "", change, "2026-03-04T05:06:08Z"},
		{"a change at a full second", "", change.Truncate(time.Second), "2026-03-04T05:06:07Z"},
		{"an earlier restart", "2026-03-04T05:06:07Z", change, "2026-03-04T05:06:08Z"},
		{"a restart of the same second", "2026-03-04T05:06:08Z", change, "2026-03-04T05:06:09Z"},
		{"a later restart, which is not called off", "2026-03-05T07:00:00+02:00", change, "2026-03-05T05:00:01Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := restarting(t, "", test.held, `{}`)
			write := Write{
				Rolls: true, Changes: []Change{{Source: db, At: test.change}}, Cause: "secret/db",
				Rolled: map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "9", UID: "u"}},
			}
			patch, err := ArgoRollout().Patch(w, write)
			if err != nil {
				t.Fatal(err)
			}
			again, err := ArgoRollout().Patch(w, write)
			if err != nil || string(again.Body) != string(patch.Body) {
				t.Errorf("the patch made again is another (%v):\n%s\n%s", err, patch.Body, again.Body)
			}
			var operations []operation
			if err := json.Unmarshal(patch.Body, &operations); err != nil {
				t.Fatal(err)
			}
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
		{"it was never restarted", "", `{"observedGeneration":"1","phase":"Healthy"}`, Complete},
		{"the controller has not looked", at, `{"phase":"Healthy","restartedAt":"` + at + `"}`, Progressing},
		{"no pod was restarted yet", at, `{"observedGeneration":"1","phase":"Progressing"}`, Progressing},
		{"pods of an earlier restart are left", at, `{"observedGeneration":"1","phase":"Progressing","restartedAt":"2026-03-04T05:06:07Z"}`, Progressing},
		{"the new pods are not available yet", at, `{"observedGeneration":"1","phase":"Progressing","restartedAt":"` + at + `"}`, Progressing},
		{"all pods are new", at, `{"observedGeneration":"1","phase":"Healthy","restartedAt":"` + at + `"}`, Complete},
		{"all pods are new, of a canary that is paused", at, `{"observedGeneration":"1","phase":"Paused","restartedAt":"` + at + `"}`, Complete},
		{"all pods are new, of a canary that was aborted", at, `{"observedGeneration":"1","phase":"Degraded","abort":true,"restartedAt":"` + at + `"}`, Complete},
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

func TestTheRevisionOfARestartIsOnTheRollout(t *testing.T) {
	const revision = `,"keyturn.dev/revision":"r1"`
	if w := restarting(t, revision, "2026-03-04T05:06:08Z", `{}`); w.Revision != "r1" {
		t.Errorf("revision: got %q, want r1", w.Revision)
	}
	if w := restarting(t, revision, "", `{}`); w.Revision != "" {
		t.Errorf("revision of a restart that was called off: got %q, want none", w.Revision)
	}
}
