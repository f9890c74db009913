//go:build !race

package actuate_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
)

// These are the troubles of a story with actuators, and with NATS.

// storyActuator is an actuator that runs.
type storyActuator struct {
	*running
	identity string
}

// lead starts an actuator.
func (st *story) lead() {
	st.started++
	st.options.Identity = fmt.Sprintf("actuator-%d", st.started)
	st.notef("%s starts", st.options.Identity)
	st.actuators = append(st.actuators, storyActuator{st.start(), st.options.Identity})
	st.look()
}

// endLeader ends who leads, as a program ends or as a machine does.
func (st *story) endLeader(kills bool) {
	holder := st.holder()
	at := max(0, slices.IndexFunc(st.actuators, func(a storyActuator) bool { return a.identity == holder }))
	leader := st.actuators[at]
	st.notef("%s ends, killed: %t", leader.identity, kills)
	if kills {
		const unpublished = 10 * time.Second // longer than outcomes wait for patches
		for _, roll := range st.rolls {
			roll.untold = roll.untold || st.elapsed()-roll.at <= unpublished
		}
		leader.kill()
	} else {
		leader.stop()
	}
	st.actuators = slices.Delete(st.actuators, at, at+1)
	st.look()
}

// leadNext has another actuator lead. There is one from then on, without an election.
func (st *story) leadNext() {
	for len(st.actuators) > 0 {
		st.endLeader(false)
	}
	st.options.LeaderElect = false
	st.changeLeader()
	st.lead()
}

// changeLeader takes in that somebody else will lead, who knows what is on the workloads and on the stream.
func (st *story) changeLeader() {
	st.leaders++
	isGapKnown := st.options.LeaderElect
	for _, w := range st.workloads {
		w.unseen, w.slow, w.recordedNow, w.sinceNews = true, false, 0, 0
		for of, pair := range w.pairs {
			pair.certain = false
			if _, recorded := w.record[of.local]; w.foreign || !recorded && !isGapKnown {
				pair.forget()
			}
		}
	}
}

// leaderEnds has another actuator lead, after things have happened that nobody sees who leads.
func (st *story) leaderEnds() bool {
	st.endLeader(st.onceIn(2))
	if !st.options.LeaderElect {
		for range st.random.IntN(3) {
			st.step(false)
		}
	}
	st.changeLeader()
	st.lead()
	if st.options.LeaderElect {
		st.wait(15 * time.Second)
	}
	return true
}

// flagsAreSwitched has an actuator lead that has other flags.
func (st *story) flagsAreSwitched() bool {
	if st.options.LeaderElect {
		return false
	}
	st.endLeader(false)
	var wanted [][]string
	for _, w := range st.workloads {
		wanted = append(wanted, st.wanted(w))
	}
	o := &st.options
	switch st.random.IntN(3) {
	case 0:
		o.RollAll = !o.RollAll
	case 1:
		o.RollOnDelete = !o.RollOnDelete
	default:
		o.RollOnCreate = oneOf(st, plan.Creations()...)
	}
	st.notef("flags: --roll-all=%t --roll-on-delete=%t --roll-on-create=%s", o.RollAll, o.RollOnDelete, o.RollOnCreate)
	for i, w := range st.workloads {
		if !slices.Equal(wanted[i], st.wanted(w)) {
			w.forget()
		}
	}
	st.changeLeader()
	st.lead()
	return true
}

// loseOutcomes says that nobody may be told how the last roll of each workload ends: the next leader does not know that it was in progress.
func (st *story) loseOutcomes() {
	last := make(map[*storyWorkload]*storyRoll)
	for _, roll := range st.rolls {
		last[roll.of] = roll
	}
	for _, roll := range last {
		roll.untold = true
	}
}

// streamLosesEvents loses some of them, or all, or the whole stream, until the watcher publishes its last events again.
func (st *story) streamLosesEvents() bool {
	switch of := oneOf(st, st.sources...); st.random.IntN(4) {
	case 0:
		st.notef("the stream is made anew")
		st.remakeStream()
		st.loseOutcomes()
	case 1:
		st.notef("the stream loses everything")
		st.loseEvents()
		st.loseOutcomes()
	default:
		st.notef("the stream loses %s", of.name)
		st.loseEvents(of.name)
	}
	st.wait(oneOf(st, 0, 5*time.Second, 20*time.Second))
	if !st.options.LeaderElect && st.onceIn(3) {
		st.endLeader(st.onceIn(2))
		st.changeLeader()
		st.lead()
	}
	st.publishAgain()
	return true
}

// publishAgain publishes the last events of all sources that exist.
func (st *story) publishAgain() {
	st.notef("the watcher publishes everything again")
	for _, of := range st.sources {
		if of.data != nil {
			st.again(of.name)
			st.hear(of)
		}
	}
}

// natsIsSilent stops NATS for a while, in which people go on, and the leader may die.
func (st *story) natsIsSilent() bool {
	if st.options.LeaderElect {
		return false
	}
	st.notef("NATS is silent")
	st.nats.Stop()
	st.silent = true
	st.peopleGoOn()
	kills := st.onceIn(2)
	if kills {
		st.endLeader(true)
	}
	st.wait(oneOf(st, 5*time.Second, 40*time.Second, 90*time.Second))
	st.notef("NATS answers again")
	st.nats.Start()
	st.wait(5 * time.Second)
	st.silent = false
	if kills {
		st.changeLeader()
		st.lead()
	}
	return true
}
