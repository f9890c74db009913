package workload

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

// recordAfter returns the record that a patch with new entries writes.
func recordAfter(t *testing.T, w *Workload, write map[string]RolledFor) (string, map[string]RolledFor) {
	t.Helper()
	patch, err := deployments.Patch(w, Write{Rolled: write, Rolls: true})
	if err != nil {
		t.Fatal(err)
	}
	written, _ := writtenBy(t, patch, annotationRolled)
	text, _ := written.(string)
	return text, parseRolled(text)
}

func TestTheRecordOfAPatternStaysSmall(t *testing.T) {
	w := workloadThat(t, "secret/db, configmap/app-*", Reference{Kind: events.KindConfigMap, Name: "app-0"})
	w.Rolled = map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "1", UID: "u"}, "configmap/other": {Fingerprint: fp("a"), Version: "9000", UID: "u"}}
	for i := range 3000 {
		w.Rolled["configmap/app-"+strconv.Itoa(i)] = RolledFor{
			Fingerprint: fp("a"), Version: strconv.Itoa(1000 + i), UID: fmt.Sprintf("5f3f6b7e-0000-4000-8000-%012d", i), Scope: ScopeOf(nil),
		}
	}
	text, record := recordAfter(t, w, map[string]RolledFor{"configmap/app-5": {Fingerprint: fp("b"), Version: "7", UID: "u"}})
	if len(text) > 64<<10 {
		t.Errorf("the record has %d bytes, want less than 64 KiB", len(text))
	}
	for source, want := range map[string]bool{
		"secret/db":          true,  // it is named
		"configmap/app-0":    true,  // it is referenced
		"configmap/app-5":    true,  // it is new
		"configmap/app-2999": true,  // it changed last
		"configmap/app-9":    false, // it is old
		"configmap/other":    false, // nothing matches it
	} {
		if _, kept := record[source]; kept != want {
			t.Errorf("the record has %s: %t, want %t", source, kept, want)
		}
	}
	if len(record) != maxMatched+2 {
		t.Errorf("the record has %d entries, want %d and 2 that are named", len(record), maxMatched)
	}
}

func TestTheSourcesOfAWorkloadAreListedOnceForARecord(t *testing.T) {
	const count = 300
	var names []string
	record := make(map[string]RolledFor)
	for i := range count {
		names = append(names, "secret/named-"+strconv.Itoa(i))
		record["secret/recorded-"+strconv.Itoa(i)] = RolledFor{Fingerprint: fp("a"), Version: "1", UID: "u"}
	}
	w := workloadThat(t, strings.Join(names, ","))
	w.Rolled = record
	if allocations := testing.AllocsPerRun(1, func() { w.newRecord(nil) }); allocations > 5*count {
		t.Errorf("%.0f allocations for %d entries", allocations, count)
	}
}
