//go:build !race

package actuate_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
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
