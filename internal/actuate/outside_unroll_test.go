//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestARollThatAdmissionStripsBeginsNoIntervalAndUsesNothingUp(t *testing.T) {
	before := midnight.Add(-2 * time.Hour).Format(time.RFC3339)
	for name, had := range map[string]string{"of one that was never rolled": "", "of one that was": before} {
		playOf(t, name, func(s *scene) {
			aspects := []aspect{
				auto, reads("secret/db"), annotated(events.AnnotationHold, "tofu apply"), annotated(workload.AnnotationRollNow, "2"),
				annotated(workload.AnnotationMinInterval, "1h"),
			}
			doneBefore := ""
			if had != "" {
				doneBefore = "1"
				aspects = append(aspects, annotated("keyturn.dev/rolled-now", doneBefore), annotated("keyturn.dev/rolled-at", had))
			}
			s.workload("web", aspects...)
			s.begin("secret/db")
			allow := s.strip()
			s.set("secret/db", "password", "two")
			s.pass(1500 * time.Millisecond)
			if s.logged("patch failed; retrying") == 0 {
				s.Error("nothing was tried")
			}
			if got := s.annotation("web", "keyturn.dev/rolled-at"); got != had {
				s.Errorf("it was rolled at %q, want %q", got, had)
			}
			if got := s.annotation("web", "keyturn.dev/rolled-now"); got != doneBefore {
				s.Errorf("that it is to be rolled now is used up: %q", got)
			}
			allow()
			s.pass(2 * time.Second)
			s.wantRolls("web")
			s.wantTold("web started content-changed", "web completed rolled-out")
			if got := s.annotation("web", "keyturn.dev/rolled-now"); got != "2" {
				s.Errorf("that roll does not use up that it was asked for: %q", got)
			}

			s.edit("web", letGo)
			s.rotate("three")
			s.wantTold("web held rolled-recently")
			s.pass(time.Hour)
			s.wantRolls("web")
		})
	}
}

func TestARollThatAdmissionStripsIsNotCounted(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRollsPerHour = 2
		s.beginWeb()
		allow := s.strip()
		s.set("secret/db", "password", "two")
		s.pass(40 * time.Second) // All six attempts are made.
		s.wantTold("web failed patch-denied")
		if got := s.annotation("web", "keyturn.dev/rolls"); got != "" {
			s.Errorf("it counts %q", got)
		}
		allow()
		for _, password := range []string{"three", "four"} {
			s.set("secret/db", "password", password)
			s.pass(time.Minute)
			s.wantRolls("web")
		}
		s.told()
		s.rotate("five")
		s.wantTold("web held rolled-too-often")
	})
}
