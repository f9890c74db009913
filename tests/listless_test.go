package tests

import (
	"strconv"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

func TestNoChangeMakesAProgramListAnything(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "0s", "--max-rollouts", "0"}})
	r.placeFence()
	const sources, changes = 10, 50
	want := tally{}
	for i := range sources {
		name := "db-" + strconv.Itoa(i)
		r.write(events.KindSecret, name, map[string]string{"password": "none"})
		w := workload{name: name, on: "auto", read: readsAll(events.KindSecret, name)}
		r.create(w)
		want[w.String()] = 1
	}
	r.write(events.KindSecret, "unread", map[string]string{"password": "none"})
	r.start()
	r.passFence()
	offset := auditEnd(t)
	for round := range changes / sources {
		r.rolls("changes of all sources", want, func() {
			for i := range sources {
				r.set(events.KindSecret, "db-"+strconv.Itoa(i), "password", strconv.Itoa(round))
			}
			r.set(events.KindSecret, "unread", "password", strconv.Itoa(round))
		})
	}
	entries := auditSince(t, offset)
	patches := 0
	for _, account := range []string{"keyturn-watcher", "keyturn-actuator"} {
		for _, e := range testbed.Requests(entries, testbed.ServiceAccountUser(programs.SystemNamespace, account)) {
			switch {
			case e.Namespace != r.namespace:
			case e.Verb == "list", strings.Contains(e.URI, "sendInitialEvents=true"):
				t.Errorf("the %s lists: %s", account, e.URI)
			case e.Verb == "patch" && e.Resource == "statefulsets":
				patches++
			}
		}
	}
	if patches < changes {
		t.Errorf("%d patches are in the audit log, want at least %d: it does not have what is looked for", patches, changes)
	}
}
