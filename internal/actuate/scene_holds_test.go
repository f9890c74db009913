//go:build !race

package actuate_test

import (
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

// These are the words for when people let workloads roll: holds, windows, intervals and limits.

// outcomesOf returns all outcomes of a workload that were told, the oldest first.
func (s *scene) outcomesOf(name string) []events.Outcome {
	s.Helper()
	return slices.DeleteFunc(s.outcomesSoFar(), func(o events.Outcome) bool { return nameOf(o.Workload) != name })
}

// lastOf returns the last outcome of a workload.
func (s *scene) lastOf(name string) events.Outcome {
	s.Helper()
	outcomes := s.outcomesOf(name)
	if len(outcomes) == 0 {
		s.Fatalf("after %s, nothing was told of %s", s.elapsed(), name)
	}
	return outcomes[len(outcomes)-1]
}

// wantLast wants the last outcome of a workload to be one, "held on-hold", and its message to have a text.
func (s *scene) wantLast(name, outcome, text string) {
	s.Helper()
	last := s.lastOf(name)
	if got := string(last.Verb) + " " + last.Reason; got != outcome || !strings.Contains(last.Message, text) {
		s.Errorf("after %s, the last outcome of %s is %s: %s; want %s: %s", s.elapsed(), name, got, last.Message, outcome, text)
	}
}

// heldUntil returns the time until which a workload is held, by its last outcome.
func (s *scene) heldUntil(name string) time.Time {
	s.Helper()
	last := s.lastOf(name)
	_, text, _ := strings.Cut(last.Message, ": until ")
	text, _, _ = strings.Cut(text, ": ")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || last.Verb != events.VerbHeld {
		s.Fatalf("after %s, %s is %s until no time: %s", s.elapsed(), name, last.Verb, last.Message)
	}
	return at
}

// wantHeldUntilWindow wants a workload to be held until its own moment in a window that opens at a time: within three minutes after that. It is later
// only in windows of more than an hour.
func (s *scene) wantHeldUntilWindow(name string, opens time.Time) {
	s.Helper()
	s.wantLast(name, "held window-closed", "")
	if until := s.heldUntil(name); until.Before(opens) || until.After(opens.Add(3*time.Minute)) {
		s.Errorf("%s is held until %s, want %s and a moment", name, until, opens)
	}
}

// wantRolledForLast wants the last roll of a workload to have been for the last events of these sources, and for nothing else.
func (s *scene) wantRolledForLast(name string, sources ...string) {
	s.Helper()
	var want, got []string
	for _, source := range sources {
		want = append(want, s.of(source).published.ID())
	}
	for _, outcome := range s.outcomesOf(name) {
		if outcome.Verb != events.VerbStarted {
			continue
		}
		got = nil
		for _, cause := range outcome.Sources {
			got = append(got, cause.Event)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("after %s, %s was last rolled for (-want +got):\n%s", s.elapsed(), name, diff)
	}
}
