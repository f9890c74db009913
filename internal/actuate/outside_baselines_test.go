//go:build !race

package actuate_test

import (
	"errors"
	"testing"
	"time"
)

// A workload has no record of a source yet, because that is refused until the change. Whether content that comes back within the debounce window is
// what its pods have is known only from the event before the window.
func TestContentThatComesBackInTheWindowIsComparedWithWhatWasThereBefore(t *testing.T) {
	const team = "configmap/team-a"
	pattern := func(s *scene) {
		s.refuse("web", errors.New("it gets no record"))
		s.workload("web", on("configmap/team-*"))
	}
	// began has the workload and its source there, and the actuator know them.
	began := func(s *scene) {
		pattern(s)
		s.begin(team)
	}
	flips := func(s *scene, there, back string) {
		s.set(team, "password", there)
		s.pass(100 * time.Millisecond)
		s.set(team, "password", back)
	}
	thereAndBack := func(s *scene) { flips(s, "two", "one") }
	rolled := []string{"web started content-changed", "web completed rolled-out"}
	tests := []struct {
		name            string
		prepare, change func(*scene)
		want            []string
	}{
		{"it is the same", began, thereAndBack, []string{"web skipped changed-back"}},
		{
			"it is the same, with a new leader",
			func(s *scene) {
				began(s)
				s.restartFor(time.Minute)
			},
			thereAndBack,
			[]string{"web skipped changed-back"},
		},
		{
			"it is the same, and nobody wanted the source before",
			func(s *scene) {
				s.begin(team)
				pattern(s)
				s.pass(time.Minute)
			},
			thereAndBack,
			[]string{"web skipped changed-back"},
		},
		{
			"it was ignored, so no pod may have got it",
			func(s *scene) {
				began(s)
				s.mark(team, asIgnored)
				s.pass(time.Minute)
			},
			thereAndBack, rolled,
		},
		{
			"the source was deleted, so pods may have started without it",
			func(s *scene) {
				began(s)
				s.erase(team)
				s.pass(time.Minute)
			},
			func(s *scene) { s.appear(team) },
			[]string{"web started appeared", "web completed rolled-out"},
		},
		{
			"the roll for it was refused, so no pod has got it",
			func(s *scene) {
				began(s)
				s.refuse("web", deniedByAdmission())
				s.set(team, "password", "two")
				s.pass(2 * time.Minute)
			},
			func(s *scene) { flips(s, "three", "two") },
			rolled,
		},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			test.prepare(s)
			s.refuse("web", nil)
			s.wantRolls()
			s.told()
			test.change(s)
			s.settle()
			s.wantTold(test.want...)
			if len(test.want) == 1 {
				s.wantWrites("web recorded")
			} else {
				s.wantWrites("web rolled")
			}
			s.pass(time.Hour)
			s.wantNothing()
		})
	}
}
