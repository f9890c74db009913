//go:build !race

package actuate_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// It changes every twenty seconds for three hours, with a new leader every five minutes, which knows what is on the workload.
func TestASourceThatChangesWithoutEndRollsAWorkloadNoMoreThanTheLimit(t *testing.T) {
	const every, most, hours = 20 * time.Second, 10, 3
	play(t, func(s *scene) {
		s.options.MaxRollsPerHour = most
		s.beginWeb()
		for i := range int(hours * time.Hour / every) {
			if i%15 == 0 {
				s.restart()
			}
			s.set("secret/db", "password", strconv.Itoa(i))
			s.pass(every)
		}
		if got := len(s.whoRolled()); got != hours*most {
			s.Errorf("it is rolled %d times in %d hours, want %d in each", got, hours, most)
		}
		if !slices.ContainsFunc(s.outcomesOf("web"), func(o events.Outcome) bool { return o.Reason == "rolled-too-often" }) {
			s.Error("nobody is told")
		}
		s.pass(time.Hour)
		s.wantRolls("web")
		s.wantRolledForLast("web", "secret/db")
	})
}

// The source changes again and again, and somebody undoes each roll and removes everything that was written with it.
func TestRollsThatAreRevertedCountAlthoughNothingIsLeftOfThem(t *testing.T) {
	const most = 3
	play(t, func(s *scene) {
		s.options.MaxRollsPerHour = most
		s.beginWeb()
		s.stall("web")
		rolls := 0
		for i := range most + 2 {
			s.set("secret/db", "password", strconv.Itoa(i))
			for range 30 {
				s.pass(time.Second)
				if rolled := len(s.whoRolled()); rolled > 0 {
					rolls += rolled
					s.edit("web", wiped)
				}
			}
		}
		counts := make(map[string]int)
		for _, outcome := range s.outcomesOf("web") {
			counts[string(outcome.Verb)+" "+outcome.Reason]++
		}
		if rolls != most || counts["started content-changed"] != most || counts["failed reverted"] != most || counts["held rolled-too-often"] == 0 {
			s.Errorf("it is rolled %d times, and the outcomes are %v; want %d rolls that are reverted", rolls, counts, most)
		}
	})
}

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
