package plan

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// annotatedWith is a Deployment that can start without db, with the text of a record.
func annotatedWith(t *testing.T, record string) *workload.Workload {
	t.Helper()
	annotations := map[string]string{workload.AnnotationRollOn: "auto"}
	if record != "" {
		annotations["keyturn.dev/rolled"] = record
	}
	w := webWith(t, annotations, workload.Reading{})
	w.Refs = []workload.Reference{optionalDB}
	return w
}

func TestANoteHasEverythingThatARecordLacks(t *testing.T) {
	had := workload.RolledFor{Fingerprint: fp("a"), Version: "90", UID: "uid"}
	got := workload.RolledFor{Fingerprint: fp("b"), Version: "100", UID: "uid"}
	text := func(entry workload.RolledFor) string { return `{"secret/db":"` + entry.String() + `"}` }
	tests := []struct {
		name, record string
		change       func(*events.Change)
		memory       Memory
		waits        bool
		want         string // the entry of db
	}{
		{name: "what was first seen", change: isFirstSeen, memory: wasThere, want: fp("b") + "@0/uid#*"},
		{name: "what it waits for", memory: cameLive, waits: true, want: "k0a1b2c3d:owed@0/uid"},
		{name: "nothing of what it does not have to wait for", memory: cameLive},
		{name: "nothing of what it has noted", record: text(workload.Owed(got)), memory: cameLive, waits: true},
		{name: "a deletion that it waits for", record: text(got), change: isDeleted, waits: true, want: "k0a1b2c3d:owed-for-deletion@0/uid"},
		{
			name: "a deletion that it waits for since it waited for a change", record: text(workload.Owed(had)), change: isDeleted, waits: true,
			want: "k0a1b2c3d:owed-for-deletion@0/uid",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := annotatedWith(t, tt.record)
			decision := Decide(w, changeOf(tt.change), tt.memory, Policy{Delete: true})
			write, needed := Note(w, []Decision{decision}, tt.waits)
			entry := ""
			if noted, ok := write.Rolled["secret/db"]; ok {
				entry = noted.String()
			}
			if entry != tt.want || needed != (tt.want != "") {
				t.Errorf("got %q (%t), want %q", entry, needed, tt.want)
			}
		})
	}
}

func TestANoteRestoresARecordThatSomebodyOverwrote(t *testing.T) {
	record := `{"secret/db":"` + workload.RolledFor{Fingerprint: fp("b"), Version: "100", UID: "uid"}.String() + `"}`
	before := annotatedWith(t, record)
	decide := func(w *workload.Workload) (workload.Write, bool) {
		return Note(w, []Decision{Decide(w, changeOf(nil), cameLive, Policy{})}, false)
	}
	if write, needed := decide(before); needed {
		t.Errorf("the record is complete, and the note has %v", write.Rolled)
	}
	after := annotatedWith(t, "{").After(before, true)
	if _, needed := decide(after); !needed {
		t.Error("the note is not needed")
	}
	testkit.WantEqual(t, "what counts", before.Rolled, after.Rolled)
}
