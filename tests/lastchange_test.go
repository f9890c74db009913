package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// lastEvent is the last event of a source of the namespace. While the disk is busy, reading it may take several attempts.
func (r *rig) lastEvent(source events.Source) (stored events.Stored) {
	r.Helper()
	source.Namespace = r.namespace
	b := r.connect()
	var failed error
	testkit.Await(r.T, "the last event of "+source.String()+" can be read", func(context.Context) bool {
		stored, failed = b.Last(r.Context(), events.Subject("demo", source))
		return failed == nil
	}, func() string { return fmt.Sprintf("the last attempt: %v", failed) })
	return stored
}

// lastChange is the last event of a source of the namespace, read.
func (r *rig) lastChange(source events.Source) events.Change {
	r.Helper()
	change, err := r.lastEvent(source).Change()
	testkit.Must(r, err)
	return change
}

// hasRolledForTheLast shows that a workload, which reads all keys of a source, has the record of its last content.
func (r *rig) hasRolledForTheLast(workload string, source events.Source) {
	r.Helper()
	var record map[string]string
	annotation := r.workload(workload).Annotations["keyturn.dev/rolled"]
	if err := json.Unmarshal([]byte(annotation), &record); err != nil {
		r.Fatalf("the record of %s: %v", workload, err)
	}
	last := r.lastChange(source)
	if version := r.source(source.Kind, source.Name).GetResourceVersion(); last.ResourceVersion != version {
		r.Errorf("the last event of %s is of its resourceVersion %s, want %s", source, last.ResourceVersion, version)
	}
	fingerprint, _, _ := strings.Cut(record[source.String()], "@")
	if fingerprint != last.Fingerprint {
		r.Errorf("the record of %s for %s: got fingerprint %s, want that of the last event, %s", workload, source, fingerprint, last.Fingerprint)
	}
}
