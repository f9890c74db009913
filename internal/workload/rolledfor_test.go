package workload

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestABrokenRecordLosesOnlyWhatIsBroken(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]RolledFor
	}{
		{"no annotation", "", nil},
		{"entries without a version or a uid", `{"a":"x","b":"x@","c":"x@1","d":"@1/u","e":"x@1/","f":"x@1/u"}`, map[string]RolledFor{"f": {Fingerprint: "x", Version: "1", UID: "u"}}},
		{"more than a roll writes", entries(maxRolled + 1), nil},
		{"a scope that is missing", `{"a":"x@1/u#","b":"x@1/#all"}`, map[string]RolledFor{"a": {Fingerprint: "x", Version: "1", UID: "u"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseRolled(test.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARecordThatCannotBeReadIsNotAnEmptyOne(t *testing.T) {
	read := func(version, text string) *Workload {
		w, _ := Read(deployments, webDeployment(version, map[string]string{AnnotationRollOn: "auto", annotationRolled: text}), Reading{})
		return w
	}
	for name, text := range map[string]string{"no JSON": "{", "more entries than a record has": entries(maxRolled + 1)} {
		t.Run(name, func(t *testing.T) {
			before := read("50", `{"secret/db":"x@7/u"}`)
			after := read("52", text).After(read("51", text).After(before, true), true)
			if diff := cmp.Diff(before.Rolled, after.Rolled); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if before.IsRecordLost() || !after.IsRecordLost() {
				t.Errorf("it is lost: %t, and %t after it was overwritten", before.IsRecordLost(), after.IsRecordLost())
			}
		})
	}
}

// entries returns the text of a record with so many entries.
func entries(count int) string {
	rolled := make(map[string]RolledFor)
	for i := range count {
		rolled[strconv.Itoa(i)] = RolledFor{Fingerprint: "x", Version: "1", UID: "u"}
	}
	return formatRolled(rolled)
}

func FuzzParseRolled(f *testing.F) {
	f.Add(`{"secret/db":"k0:00@1/u"}`)
	f.Add(`{"secret/db":"k0:00@1/u#1a2b3c4d"}`)
	f.Add(`{"secret/db":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		read := parseRolled(text)
		written := formatRolled(read)
		if diff := cmp.Diff(len(read), len(parseRolled(written))); diff != "" {
			t.Errorf("what was read is written otherwise: %q, %q", text, written)
		}
	})
}

func TestTheRecordSaysWhatAWorkloadWaitsToBeRolledFor(t *testing.T) {
	change := RolledFor{Fingerprint: "k1:x", Version: "100", UID: "uid", Scope: "*"}
	record := formatRolled(map[string]RolledFor{
		"secret/db": Owed(change), "secret/gone": Owed(DeletedAfter(change)), "secret/had": change, "secret/unwanted": Owed(change),
	})
	annotations := map[string]string{annotationRolled: record, AnnotationRollOn: "secret/db, secret/gone, secret/had"}
	w := readAs(t, deployments, webDeployment("50", annotations), Reading{})
	got := make(map[string]bool)
	for _, source := range w.Owed() {
		if source.Namespace != "shop" || source.Kind != events.KindSecret {
			t.Errorf("it names %v", source)
		}
		got[source.Name] = w.Rolled[source.String()].OwesDeletion()
	}
	testkit.WantEqual(t, "what it waits for, and whether that is a deletion", map[string]bool{"db": false, "gone": true}, got)
	if owed := w.Rolled["secret/db"]; !owed.Differs(change) || owed.SameChange(change) || events.Newer(owed.Version, "1") {
		t.Errorf("%v is taken for the change, or for a later one", owed)
	}
	if w.Rolled["secret/gone"].IsDeleted() {
		t.Error("it is taken for rolled")
	}
}
