package events

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAHoldIsToldInOneShortLine(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"no value is no hold", "", ""},
		{"nor are spaces", " \n\t ", ""},
		{"a reason", "migration until Monday", "migration until Monday"},
		{"with spaces and lines", "  the\nmigration\r\n\truns ", "the migration runs"},
		{"with control characters", "a\x1b[31mb\x00", "a?[31mb?"},
		{"with what turns the text around", "a\u202eb", "a?b"},
		{"of other than letters only", "\u200b", "?"},
		{"that is no UTF-8", "a\xffb", "a?b"},
		{"of all that it may have", strings.Repeat("x", maxHold), strings.Repeat("x", maxHold)},
		{"that is too long", strings.Repeat("x", maxHold+1), strings.Repeat("x", maxHold-3) + "..."},
		{"that is cut within a letter", strings.Repeat("é", maxHold), strings.Repeat("é", (maxHold-3)/2) + "..."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := HoldText(tt.value)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := HoldText(got); again != got {
				t.Errorf("what was told becomes %q", again)
			}
		})
	}
}

func FuzzHoldText(f *testing.F) {
	f.Add("the migration\nruns")
	f.Add(strings.Repeat("é \x00", maxHold))
	f.Fuzz(func(t *testing.T, value string) {
		text := HoldText(value)
		if len(text) > maxHold || strings.ContainsAny(text, "\n\r\x00\x1b") || HoldText(text) != text {
			t.Errorf("%q is reported as %q", value, text)
		}
		c := change()
		c.Hold = value
		e, err := c.Event()
		if err != nil {
			t.Fatalf("%q cannot be published: %v", value, err)
		}
		if parsed, err := ParseChange(e); err != nil || parsed.Hold != text {
			t.Errorf("%q is read as %q: %v", value, parsed.Hold, err)
		}
	})
}

func TestGoldenEventOfASourceOnHoldSaysWhy(t *testing.T) {
	held := changeOf(KindSecret, VerbObserved)
	held.Hold = "the migration runs"
	parsed, err := ParseChange(mustEvent(t, held.Event))
	if err != nil || parsed.Hold != held.Hold {
		t.Errorf("it says %q, %v", parsed.Hold, err)
	}
	testkit.Golden(t, "testdata/secret.onhold.golden", wire(t, mustEvent(t, held.Event), Subject(held.Cluster, held.Source)))
}

// A watcher of another version may know other letters, and think otherwise of what is short.
func TestAHoldOfAnotherVersionLosesNoChange(t *testing.T) {
	for _, text := range []string{"the migration\nruns", strings.Repeat("x", maxHold+1), "\u202e"} {
		held := changeOf(KindSecret, VerbObserved)
		held.Hold = "the migration runs"
		e := mustEvent(t, held.Event)
		quoted, err := json.Marshal(text)
		must(t, err)
		must(t, e.SetData("application/json", bytes.Replace(e.Data(), []byte(`"the migration runs"`), quoted, 1)))
		if parsed, err := ParseChange(e); err != nil || parsed.Hold != HoldText(text) {
			t.Errorf("%q is read as %q: %v", text, parsed.Hold, err)
		}
	}
}
