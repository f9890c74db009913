//go:build !race

package actuate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
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

// People have chosen for hundreds of workloads that they wait, and then everything is restarted at once.
func TestLedgerManyThatWaitForPeopleOutliveARestartOfEverything(t *testing.T) {
	held, windowed := namesOf("held", 250), namesOf("windowed", 250)
	play(t, func(s *scene) {
		for _, name := range held {
			s.workload(name, auto, onHold, reads("secret/db"))
		}
		for _, name := range windowed {
			s.workload(name, auto, annotated(workload.AnnotationWindow, "0 1 * * * for 1h UTC"), reads("secret/db"))
		}
		leader := s.begin("secret/db")
		s.rest()
		s.set("secret/db", "password", "two")
		s.rest()
		s.nats.Stop()
		leader.kill()
		s.pass(time.Minute)
		s.nats.Start()
		s.startFor(11 * time.Minute)
		s.wantWrites()
		s.wantTold()
		s.wantNotices()
		for _, name := range held {
			s.edit(name, letGo)
		}
		s.pass(time.Minute)
		s.wantWrites(each(held, " rolled")...)
		s.passUntil(midnight.Add(time.Hour - time.Second))
		s.wantWrites()
		s.pass(3*time.Minute + 10*time.Second) // Each has its own moment within the first three minutes of the window.
		s.wantWrites(each(windowed, " rolled")...)
		for _, name := range slices.Concat(held, windowed) {
			s.wantRecord(name, "secret/db")
		}
	})
}

// each returns names with what becomes of them.
func each(names []string, becomes string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = name + becomes
	}
	return all
}

// Everything that people have chosen is on the workload, or told by the clock.
func TestLedgerAWorkloadWaitsForItsIntervalOnceOverALeader(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, annotated(workload.AnnotationMinInterval, "30m"), reads("secret/db"))
		s.atRest("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		s.set("secret/db", "password", "three")
		s.rest()
		s.restartFor(15 * time.Minute)
		s.wantRolls()
		s.wantTold()
		s.pass(10 * time.Minute)
		s.wantEnds(rolled("web"))
	})
}

func TestLedgerTwelveRotationsTwoSecondsApartRollAFewTimes(t *testing.T) {
	var secrets []string
	for _, month := range []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"} {
		secrets = append(secrets, "secret/"+month)
	}
	play(t, func(s *scene) {
		s.workload("web", auto, reads(secrets...))
		s.atRest(secrets...)
		for _, name := range secrets {
			s.set(name, "password", "two")
			s.pass(2 * time.Second)
		}
		s.pass(11 * time.Minute)
		for _, name := range secrets {
			s.wantRecord("web", name)
		}
		s.wantEnds(rolledTimes(5))
	})
}
