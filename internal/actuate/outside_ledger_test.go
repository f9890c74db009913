//go:build !race

package actuate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The tests whose names begin with TestLedger say what happens where a record, an event or a leader is lost, is from somebody else, or comes late.

// fixture is something that happens, and what comes of it.
type fixture struct {
	name string
	play func(s *scene)
	want ends
}

// ends is what a play has led to since it has last called soFar or rest.
type ends struct {
	// rolls are the workloads that were rolled, separated by spaces, and told are the outcomes, separated by semicolons.
	rolls, told string
	// quiet says that nothing was patched at all, not even a record.
	quiet bool
}

// rolled is the end of a play in which these workloads are rolled for content that has changed, one after the other if one is named again.
func rolled(workloads ...string) ends {
	var told []string
	for _, name := range workloads {
		told = append(told, name+" started content-changed", name+" completed rolled-out")
	}
	return ends{rolls: strings.Join(workloads, " "), told: strings.Join(told, "; ")}
}

// rolledTimes is the end of a play in which web is rolled so often for content that has changed.
func rolledTimes(count int) ends { return rolled(slices.Repeat([]string{"web"}, count)...) }

// testFixtures plays each fixture.
func testFixtures(t *testing.T, fixtures []fixture) {
	t.Helper()
	for _, f := range fixtures {
		playOf(t, f.name, func(s *scene) {
			f.play(s)
			s.wantEnds(f.want)
		})
	}
}

// wantEnds wants this to have happened since the last call of soFar or rest.
func (s *scene) wantEnds(want ends) {
	s.Helper()
	seen := s.seen
	for _, w := range s.writesSince(&seen) {
		if want.quiet && !w.rolls {
			s.Errorf("a record of %s is written: %s", w.workload, w.body)
		}
	}
	s.wantRolls(listed(want.rolls, " ")...)
	s.wantTold(listed(want.told, "; ")...)
}

// namesOf returns the names of so many workloads.
func namesOf(what string, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%03d", what, i)
	}
	return names
}

// listed returns what a text lists.
func listed(text, separator string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, separator)
}
