//go:build !race

package actuate_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/tests/testkit"
)

// storiesToPlay returns how many stories are played. Those of the first 3,000 seeds pass.
func storiesToPlay() int {
	switch {
	case testkit.IsNightly():
		return 300
	case testing.Short():
		return 20
	default:
		return 60
	}
}

// Each story is another one, made of what may happen to sources, workloads, actuators and the stream, in any order and at any time. The seed that it
// is named by makes it again.
func TestWhateverHappensEachWorkloadIsRolledWhenItMustBe(t *testing.T) {
	for seed := range storiesToPlay() {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("alone: KEYTURN_TEST_NIGHTLY=1 go test ./internal/actuate -run '^%s$'", strings.Replace(t.Name(), "/", "$/^", 1))
				}
			}()
			play(t, func(s *scene) { newStory(s, uint64(seed)).unfold() })
		})
	}
}

const (
	// storyPatience is how long it may take until everybody has what it must have: a debounce window, the wait between two attempts, which others
	// may wait for, and a canary for each source.
	storyPatience = 8 * time.Minute
	// refusalPatience is how long that may take after patches were refused.
	refusalPatience = 12 * time.Minute
	// refusedRest is how long it takes until a patch that is refused is sent as rarely as ever.
	refusedRest = 20 * time.Minute
	// storyRest is longer than HISTORY takes an outcome that is told twice for one.
	storyRest = 11 * time.Minute
	// takeover is how long it takes until a new leader has looked at everything, several times.
	takeover = 3 * time.Minute
)

// unfold plays the story: anything happens, then nothing more does but a last change of each source, and then everything rests while leaders change.
func (st *story) unfold() {
	defer func() {
		if st.Failed() {
			st.Logf("the story:\n%s", strings.Join(st.tale, "\n"))
		}
	}()
	st.open()
	for range 20 + st.random.IntN(16) {
		st.step(true)
	}
	st.endTroubles()
	st.await(refusalPatience)
	st.verify(changesReachPods)
	st.lastChanges()
	st.disturb()
	st.restUntilNextLeader()
	st.switchFlagsAtRest()
	for _, always := range []invariant{
		rollsAreNeeded, rollsDiffer, wavesKeepTheirOrder, recordsOnlyGrow, recordsAreFew, rollsAreTold, undoneRollsStayUndone, repetitionsEnd,
	} {
		st.verify(always)
	}
}

// lastChanges changes every source once more. In some stories a policy refuses all patches of one workload meanwhile.
func (st *story) lastChanges() {
	if st.calm || !st.onceIn(3) {
		st.changeAll()
		st.await(storyPatience)
		st.verify(changesReachPods)
		return
	}
	st.frozen = oneOf(st, st.workloads...)
	st.deny(st.frozen)
	st.changeAll()
	st.await(storyPatience)
	st.verify(refusalsDelayNobody)
	st.waitRefused()
	st.verify(refusedPatchesAreRare)
	st.accept(st.frozen)
	st.frozen = nil
	st.await(refusalPatience)
	st.verify(changesReachPods)
}

// waitRefused lets time pass until a patch that is refused is sent as rarely as ever, and then counts how often it is sent.
func (st *story) waitRefused() {
	st.wait(refusedRest)
	before := st.attempts(st.frozen)
	st.wait(refusedRest)
	st.refused = st.attempts(st.frozen) - before
}

// restUntilNextLeader lets everything come to rest, and another actuator lead then.
func (st *story) restUntilNextLeader() {
	st.wait(storyRest / 2)
	st.quiet = st.count()
	st.wait(storyRest / 2)
	st.verify(nothingMoreHappens)

	tracer, meter := st.options.Tracer, st.options.Meter
	st.gauges = st.instrument()
	st.leadNext()
	st.wait(takeover)
	st.verify(nothingMoreHappens)
	st.verify(nothingWaits)
	st.options.Tracer, st.options.Meter = tracer, meter
}

// switchFlagsAtRest lets another actuator lead that has other flags. After that, every source changes once more.
func (st *story) switchFlagsAtRest() {
	st.quiet = st.count()
	wanted := make(map[*storyWorkload][]string)
	for _, w := range st.workloads {
		wanted[w] = st.wanted(w)
	}
	o := &st.options
	o.RollAll, o.RollOnDelete, o.RollOnCreate = true, !o.RollOnDelete, plan.CreateAlways
	st.notef("flags: everything that adds reasons to roll, --roll-on-delete=%t", o.RollOnDelete)
	for _, w := range st.workloads {
		w.isBack = len(w.record) > 0 && len(wanted[w]) < len(st.wanted(w))
	}
	st.leadNext()
	st.wait(takeover)
	st.verify(flagsRollNothing)
	st.changeAll()
	st.await(storyPatience)
	st.verify(changesReachPods)
}
