package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

// wantTest is a test of whether one workload wants one source.
type wantTest struct {
	name     string
	workload map[string]string
	template map[string]string
	all      bool
	// reloader is --reloader.
	reloader bool
	source   string
	ref      *Reference
	match    bool

	want WantReason
	keys []string
	// by is the annotation and the item that must have decided, as "<annotation>: <item>". If empty, it is not compared.
	by string
}

func runWantTests(t *testing.T, tests []wantTest) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			optIn, errs := parseOptIn(tt.workload, tt.template, Reading{All: tt.all, Reloader: tt.reloader})
			if len(errs) > 0 {
				t.Fatalf("errors %v", errs)
			}
			want := optIn.Wants(source(t, tt.source), tt.ref, tt.match)
			if want.Reason != tt.want {
				t.Errorf("reason %s, want %s", want.Reason, tt.want)
			}
			if diff := cmp.Diff(tt.keys, want.Keys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if by := want.Annotation + ": " + want.Item; tt.by != "" && by != tt.by {
				t.Errorf("decided by %q, want %q", by, tt.by)
			}
			if optIn.Empty() && (want.Wanted() || want.Reason == OnlyPulled) {
				t.Error("it is empty, but wants a source")
			}
		})
	}
}

func source(t testing.TB, text string) events.Source {
	t.Helper()
	source, err := events.ParseSource(text)
	if err != nil {
		t.Fatal(err)
	}
	source.Namespace = "shop"
	return source
}

func rollOn(text string) map[string]string { return map[string]string{AnnotationRollOn: text} }

// reads returns a reference that reads the keys, or all if there are none.
func reads(keys ...string) *Reference { return &Reference{Keys: keys} }

func pulls() *Reference { return &Reference{ByPull: true} }

func TestWantReasonsHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for r := NotWanted; r <= byAll; r++ {
		name := r.String()
		if name == "unknown" || seen[name] {
			t.Errorf("reason %d is called %q", r, name)
		}
		seen[name] = true
		if got, want := (Want{Reason: r}).Wanted(), strings.HasPrefix(name, "by-"); got != want {
			t.Errorf("Wanted() = %t for %s", got, name)
		}
	}
}
