package tests

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

func TestAllWorkloadsRollIfToldExceptThoseThatSayNo(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--roll-all"}})
	r.secret("db", map[string]string{"password": "one"})
	r.placeFence()
	web := r.reading("web", "db", 1, nil)
	web.Annotations = nil
	r.deploy(web)
	for _, w := range []workload{
		{name: "plain", read: readsAll(events.KindSecret, "db")},
		{kind: "cronjob", name: "nightly", read: readsAll(events.KindSecret, "db")},
		{name: "never", on: "none", read: readsAll(events.KindSecret, "db")},
		{name: "not-of-reloader", annotations: reloader("auto", "false"), read: readsAll(events.KindSecret, "db")},
		{name: "other", read: readsAll(events.KindConfigMap, "db")},
	} {
		r.create(w)
	}
	r.start()
	r.rolls("a change", once("deployment/web", "statefulset/plain", "cronjob/nightly"), func() {
		r.set(events.KindSecret, "db", "password", "two")
	})
	r.outcomeOf("web", events.VerbCompleted)
}
