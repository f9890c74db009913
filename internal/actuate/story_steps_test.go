//go:build !race

package actuate_test

import (
	"slices"
	"time"
)

// storyStep is something that may happen in a story.
type storyStep struct {
	// weight is how often it happens, compared with others.
	weight int
	// isTrouble says that it does not happen in a calm story.
	isTrouble bool
	// happens returns false if it cannot happen now.
	happens func(*story) bool
}

func storySteps() []storyStep {
	return []storyStep{
		{12, false, (*story).sourceChanges},
		{2, false, (*story).sourceFlips},
		{2, false, (*story).sourceIsSeenLate},
		{2, false, (*story).sourceGoes},
		{4, false, (*story).sourceComes},
		{1, false, (*story).sourceLosesKey},
		{2, false, (*story).sourceIsIgnored},
		{2, false, (*story).sourceIsHeld},

		{4, false, (*story).templateIsEdited},
		{4, false, (*story).workloadIsHeld},
		{2, false, (*story).workloadIsDelayed},
		{1, false, (*story).workloadRollsNow},
		{2, false, (*story).optInChanges},
		{1, false, (*story).waveChanges},
		{2, false, (*story).isKept},
		{2, false, (*story).isUndone},

		{2, false, (*story).rolloutsStall},
		{1, false, (*story).rolloutFails},
		{3, false, (*story).rolloutIsCompleted},
		{1, false, (*story).rolloutIsPaused},
		{1, false, (*story).podsFail},

		{2, false, (*story).patchesFail},
		{1, false, (*story).patchesAreSlow},
		{1, false, (*story).answersAreLost},

		{2, true, (*story).patchesAreDenied},
		{2, true, (*story).recordIsRemoved},
		{2, true, (*story).recordComesBack},
		{1, true, (*story).operatorComes},
		{1, true, (*story).operatorRestores},
		{3, true, (*story).leaderEnds},
		{1, true, (*story).flagsAreSwitched},
		{3, true, (*story).streamLosesEvents},
		{1, true, (*story).comesLate},
		{1, true, (*story).natsIsSilent},
	}
}

// step lets one thing happen, and time pass. Without troubles, it is one that happens in calm stories, too.
func (st *story) step(troubles bool) {
	steps := slices.DeleteFunc(storySteps(), func(s storyStep) bool { return s.isTrouble && (st.calm || !troubles) })
	sum := 0
	for _, s := range steps {
		sum += s.weight
	}
	for happened := false; !happened; {
		at, left := 0, st.random.IntN(sum)
		for ; left >= steps[at].weight; at++ {
			left -= steps[at].weight
		}
		happened = steps[at].happens(st)
	}
	st.wait(oneOf(st, 0, 300*time.Millisecond, 1500*time.Millisecond, 5*time.Second, 12*time.Second, 30*time.Second))
}

// peopleGoOn lets a few things happen to workloads.
func (st *story) peopleGoOn() {
	for range st.random.IntN(3) {
		oneOf(st, (*story).templateIsEdited, (*story).workloadIsHeld, (*story).rolloutIsCompleted, (*story).rolloutsStall)(st)
		st.wait(oneOf(st, 0, 3*time.Second))
	}
}
