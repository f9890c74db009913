package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestARollThatAdmissionStripsBeginsNoIntervalAndUsesNothingUp(t *testing.T) {
	before := written.Add(-2 * time.Hour).Format(time.RFC3339)
	for name, had := range map[string]string{"of one that was never rolled": "", "of one that was": before} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{
				workload.AnnotationRollOn: "auto", events.AnnotationHold: "tofu apply", workload.AnnotationRollNow: "2", workload.AnnotationMinInterval: "1h",
			}
			if had != "" {
				annotations["keyturn.dev/rolled-now"], annotations["keyturn.dev/rolled-at"] = "1", had
			}
			b := newReadBed(t, workload.Reading{}, annotations)
			b.strips = true
			b.change()
			if got := b.deployment.Annotations["keyturn.dev/rolled-at"]; got != had {
				t.Errorf("it was rolled at %q, want %q", got, had)
			}
			if !b.read().RollsNow() || !b.intake.index.get(b.read().Key()).RollsNow() {
				t.Error("that it is to be rolled now is used up")
			}
			b.strips = false
			b.outcomes()
			b.act()
			if got := b.outcomes(); len(got) != 1 || got[0].Verb != events.VerbStarted {
				t.Errorf("got %+v, want that it is rolled without a wait", got)
			}
			if b.read().RollsNow() {
				t.Error("that roll does not use up that it was asked for")
			}
			if _, waits := b.read().NextRoll(b.now); !waits {
				t.Error("that roll begins no interval")
			}
		})
	}
}

func TestARollThatAdmissionStripsIsNotCounted(t *testing.T) {
	b := newReadBed(t, workload.Reading{MaxRollsPerHour: 3}, rollOn("auto"))
	b.strips = true
	for range 4 {
		b.change()
	}
	if got := b.deployment.Annotations["keyturn.dev/rolls"]; got != "" || b.read().Revision != "" {
		t.Errorf("it was never rolled (revision %q), and counts %q", b.read().Revision, got)
	}
}
