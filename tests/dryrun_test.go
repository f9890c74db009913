package tests

import (
	"context"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

func TestADryRunTellsOfARollAndPatchesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.start()
	r.eventually("what it has is recorded", func(context.Context) bool { return r.deployment("web").Annotations["keyturn.dev/rolled"] != "" })
	r.stop(r.actuator)
	offset := auditEnd(t)
	r.startActuator("--dry-run")
	r.secret("db", map[string]string{"password": "two"})
	if got := r.outcomeOf("web", events.VerbSkipped); got.Reason != "dry-run" {
		t.Errorf("outcome: got %s, want dry-run", got.Reason)
	}
	history := r.ask("history", "-n", r.namespace, "--workload", "deployment/web")
	if len(lines(history, "  skipped  ", "dry-run", "secret/db")) != 1 {
		t.Errorf("history: want one line of the dry run:\n%s", history)
	}

	// Afterwards the same change rolls: the dry run has neither recorded nor consumed it.
	r.stop(r.actuator)
	user := testbed.ServiceAccountUser(programs.SystemNamespace, "keyturn-actuator")
	entries := auditSince(t, offset)
	for _, e := range testbed.Requests(entries, user) {
		reads := e.Verb == "list" || e.Verb == "watch" || e.Verb == "get" && e.Resource == "namespaces"
		if e.Namespace == r.namespace && !reads && e.Resource != "events" {
			t.Errorf("the dry run made the request %s %s", e.Verb, e.URI)
		}
	}
	r.startActuator()
	r.eventually("the change is rolled", func(context.Context) bool { return r.count("web", events.VerbCompleted) == 1 })
}
