package workload

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestABrokenRecordLosesOnlyWhatIsBroken(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]RolledFor
	}{
		{"no annotation", "", nil},
		{"no JSON", "{", nil},
		{"a list", `["secret/db"]`, nil},
		{"entries without a version or a uid", `{"a":"x","b":"x@","c":"x@1","d":"@1/u","e":"x@1/","f":"x@1/u"}`, map[string]RolledFor{"f": {Fingerprint: "x", Version: "1", UID: "u"}}},
		{"as many entries as may be", entries(maxRolled), parsed(maxRolled)},
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

// entries returns the text of a record with so many entries, and parsed what is read of it.
func entries(count int) string {
	text, _ := formatRolled(parsed(count))
	return text
}

func parsed(count int) map[string]RolledFor {
	rolled := make(map[string]RolledFor)
	for i := range count {
		rolled[strconv.Itoa(i)] = RolledFor{Fingerprint: "x", Version: "1", UID: "u"}
	}
	return rolled
}

func FuzzParseRolled(f *testing.F) {
	f.Add(`{"secret/db":"k0:00@1/u"}`)
	f.Add(`{"secret/db":"k0:00@1/u#1a2b3c4d"}`)
	f.Add(`{"secret/db":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		read := parseRolled(text)
		written, err := formatRolled(read)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(len(read), len(parseRolled(written))); diff != "" {
			t.Errorf("what was read is written otherwise: %q, %q", text, written)
		}
	})
}
