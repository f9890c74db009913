package tests

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// The policy admits any text as a record. So the token of the actuator can write that a workload was rolled for a change that is still to come, and
// was enough to silence all later changes of a source, long after the token was revoked.
func TestARecordThatTheActuatorsTokenForgedSilencesNoRotation(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	var all []string
	for _, k := range kinds {
		web := workload{kind: k.name, name: "web", on: "auto", read: readsAll(events.KindSecret, "db")}
		r.create(web)
		all = append(all, web.String())
	}
	r.placeFence()
	r.start()
	r.rolls("the password changes", once(all...), func() { r.set(events.KindSecret, "db", "password", "two") })
	r.rollsNothing("the records are forged", func() {
		for _, name := range all {
			r.forgeRecord(name, "secret/db", "9999999999999999999")
		}
	})
	r.rolls("the password, which has leaked, changes", once(all...), func() { r.set(events.KindSecret, "db", "password", "three") })
	r.eventually("it is told of each workload that its record was forged", func(context.Context) bool {
		told := make(map[string]bool)
		for _, outcome := range r.outcomes() {
			if outcome.Workload.Namespace == r.namespace && outcome.Reason == "record-impossible" {
				told[outcome.Workload.String()] = true
			}
		}
		return len(told) == len(all)
	})
	r.rolls("the password changes once more", once(all...), func() { r.set(events.KindSecret, "db", "password", "four") })
}

// forgeRecord writes into the record of a workload, with the token of the actuator, that it was rolled for a version of a source.
func (r *rig) forgeRecord(workload, source, version string) {
	r.Helper()
	record := make(map[string]string)
	if err := json.Unmarshal([]byte(r.workload(workload).Annotations[recordAnnotation]), &record); err != nil {
		r.Fatalf("the record of %s: %v", workload, err)
	}
	fingerprint, rest, _ := strings.Cut(record[source], "@")
	_, object, isThere := strings.Cut(rest, "/")
	if !isThere {
		r.Fatalf("the record of %s has no entry of %s: %v", workload, source, record)
	}
	record[source] = fingerprint + "@" + version + "/" + object
	text, err := json.Marshal(record)
	testkit.Must(r, err)
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{recordAnnotation: string(text)}}})
	testkit.Must(r, err)
	config := configOf(r, programs.SystemNamespace, "keyturn-actuator")
	kindOf, name, _ := strings.Cut(workload, "/")
	for _, k := range kinds {
		if k.name != kindOf {
			continue
		}
		_, err := metadata.NewForConfigOrDie(config).Resource(k.resource).Namespace(r.namespace).
			Patch(r.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "keyturn"})
		if err != nil {
			r.Fatalf("the record of %s with the token of the actuator: %v", workload, err)
		}
	}
}
