package actuate

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

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
			if !b.read().RollsNow() || !b.intake.index.Get(b.read().Key()).RollsNow() {
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

// The roll is counted on the workload until its record is corrected.
func TestARollThatAdmissionStripsIsNotCountedAlsoIfTheWatchShowsIt(t *testing.T) {
	counts := func(d *appsv1.Deployment) bool { return d.Annotations["keyturn.dev/rolls"] != "" }
	for name, watches := range map[string]func(*appsv1.Deployment) bool{
		"before its correction":                         counts,
		"and its correction, before the answer to that": func(*appsv1.Deployment) bool { return true },
		"not, but its correction":                       func(d *appsv1.Deployment) bool { return !counts(d) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newReadBed(t, workload.Reading{MaxRollsPerHour: 1}, rollOn("auto"))
			b.strips, b.watches = true, watches
			b.change()
			b.act()
			b.strips, b.watches = false, nil
			b.outcomes()
			b.act()
			if got := b.outcomes(); len(got) != 1 || got[0].Verb != events.VerbStarted {
				t.Errorf("got %+v, want that it is rolled", got)
			}
			if _, _, often := b.intake.index.Get(b.read().Key()).TooOften(b.now); !often {
				t.Error("that roll is not counted")
			}
		})
	}
}
