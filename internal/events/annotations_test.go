package events

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAHoldIsToldInOneShortLine(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"no value is no hold", "", ""},
		{"a reason", "migration until Monday", "migration until Monday"},
		{"with spaces and lines", "  the\nmigration\r\n\truns ", "the migration runs"},
		{"with what turns the text around", "a\u202eb", "a?b"},
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
