//go:build !race

package actuate_test

import (
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

// invariant is what holds in every story.
type invariant struct {
	// says is the sentence.
	says string
	// broken returns what contradicts it.
	broken func(*story) []string
}

// verify fails the story if it contradicts an invariant.
func (st *story) verify(i invariant) {
	st.Helper()
	for _, how := range i.broken(st) {
		st.notef("BROKEN: %s", how)
		st.Errorf("after %s, it is not so that %s: %s", st.elapsed(), i.says, how)
	}
}

// noRoll returns what contradicts that nothing of this kind is true of a roll.
func noRoll(is func(*storyRoll) bool) func(*story) []string {
	return func(st *story) []string {
		var broken []string
		for _, roll := range st.rolls {
			if is(roll) {
				broken = append(broken, roll.String())
			}
		}
		return broken
	}
}

var rollsAreNeeded = invariant{
	says: "a roll has a source of which pods may have read something else, or which changed back, was gone or was made again since they began, as far " +
		"as who leads can know",
	broken: noRoll(func(roll *storyRoll) bool {
		isNeeded := len(roll.lacking) > 0 || roll.flips || roll.differs && (roll.again || roll.unseen)
		return !isNeeded && !roll.late
	}),
}

var rollsDiffer = invariant{
	says: "nobody is rolled for the content that the record has, whatever the stream has lost, unless it changed back, was gone or was made again " +
		"since pods began, as far as who leads can know, or somebody has undone a roll",
	broken: noRoll(func(roll *storyRoll) bool {
		return !roll.differs && !roll.flips && !roll.again && !roll.contested && !roll.late
	}),
}

var changesReachPods = invariant{
	says:   "everybody's pods have the last content that they must have, some time after the last trouble",
	broken: (*story).unrolled,
}

var refusalsDelayNobody = invariant{
	says:   "a workload whose patches are refused delays nobody else",
	broken: (*story).unrolled,
}

var refusedPatchesAreRare = invariant{
	says: "a patch that is refused for long is sent once in five minutes at most",
	broken: func(st *story) []string {
		if most := int(refusedRest / (5 * time.Minute)); st.refused > most {
			return []string{fmt.Sprintf("that of %s was sent %d times within %s, want %d at most", st.frozen.name, st.refused, refusedRest, most)}
		}
		return nil
	},
}

// unrolled returns who must be rolled.
func (st *story) unrolled() []string {
	var left []string
	for _, w := range st.workloads {
		if w == st.frozen || w.fought {
			continue // One that others fight about is left alone after a few attempts, until the next change.
		}
		for _, of := range st.sourcesOf(w) {
			if pair := w.pairs[of]; pair.owed {
				left = append(left, fmt.Sprintf("%s has %s of %s, which is %s", w.name, pair.born, of.name, pair.now))
			}
		}
	}
	return left
}

var wavesKeepTheirOrder = invariant{
	says: "nobody is rolled for a source before those of lower waves that have to be rolled for it, and that nothing holds up",
	broken: func(st *story) []string {
		var broken []string
		for _, roll := range st.rolls {
			for _, name := range roll.before {
				broken = append(broken, roll.String()+", before "+name)
			}
		}
		return broken
	},
}

var recordsOnlyGrow = invariant{
	says: "while one actuator leads, no entry of a record is replaced by an earlier one of the same source",
	broken: func(st *story) []string {
		var broken []string
		for _, w := range st.workloads {
			broken = append(broken, w.shrunk...)
		}
		return broken
	},
}

var recordsAreFew = invariant{
	says: "a record alone is written about once for what happens to a source, to the workload, or to the leader",
	broken: func(st *story) []string {
		var broken []string
		for _, w := range st.workloads {
			if most := 2*(w.events+w.others+st.leaders) + 5; w.recorded > most {
				broken = append(broken, fmt.Sprintf("%s is recorded %d times, want %d at most", w.name, w.recorded, most))
			}
		}
		return broken
	},
}

var rollsAreTold = invariant{
	says: "each roll is told when it starts, once by each leader at most, and when it ends",
	broken: func(st *story) []string {
		started, ended := make(map[string]int), make(map[string]int)
		for _, outcome := range st.outcomesSoFar() {
			roll := nameOf(outcome.Workload) + " " + outcome.Revision
			switch {
			case outcome.Revision == "":
			case outcome.Verb == events.VerbStarted:
				started[roll]++
			default:
				ended[roll]++
			}
		}
		var broken []string
		for _, roll := range st.rolls {
			key := roll.of.name + " " + roll.revision
			if count := started[key]; !roll.untold && (count == 0 || count > st.leaders || ended[key] == 0) {
				broken = append(broken, fmt.Sprintf("%s: it is told %d times that it starts, and %d times that it ends", roll, count, ended[key]))
			}
		}
		return broken
	},
}

var undoneRollsStayUndone = invariant{
	says:   "what a person has undone is not rolled again before something changes",
	broken: noRoll(func(roll *storyRoll) bool { return roll.undone }),
}

var repetitionsEnd = invariant{
	says: "a roll that somebody restores is repeated three times at most, until something changes",
	broken: func(st *story) []string {
		var broken []string
		for _, roll := range st.rolls {
			if roll.repetition > plan.RevertRetries {
				broken = append(broken, fmt.Sprintf("%s, repetition %d", roll, roll.repetition))
			}
		}
		return broken
	},
}

var nothingMoreHappens = invariant{
	says: "at rest nothing is patched and nothing is told, also by the next leader",
	broken: func(st *story) []string {
		if now := st.count(); now != st.quiet {
			return []string{fmt.Sprintf("there were %+v, and are %+v", st.quiet, now)}
		}
		return nil
	},
}

var nothingWaits = invariant{
	says: "at rest nothing waits, by what is measured",
	broken: func(st *story) []string {
		var broken []string
		measured := st.gauges.measurements()
		for _, name := range []string{"keyturn.workloads.pending", "keyturn.rollouts.active"} {
			if got, ok := measured.value(name, "", ""); !ok || got != 0 {
				broken = append(broken, fmt.Sprintf("%s is %d, there: %t", name, got, ok))
			}
		}
		return broken
	},
}

var flagsRollNothing = invariant{
	says: "flags that are switched at rest roll nobody, except who was opted in before and has an old record",
	broken: func(st *story) []string {
		st.look()
		var broken []string
		for _, roll := range st.rolls[st.quiet.rolls:] {
			if !roll.of.isBack {
				broken = append(broken, roll.String())
			}
		}
		return broken
	},
}
