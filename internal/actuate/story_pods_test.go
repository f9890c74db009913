//go:build !race

package actuate_test

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/plan"
)

// storyPods is what the pods of a workload may have read, as far as somebody can know who is not in them.
type storyPods struct {
	template storyTemplate
	// running are the templates of which there may be pods, the current one last.
	running []storyTemplate
	// had is all that pods of each template may have read, of each source. First is what there was when the first of them began that may still be
	// there: they have that, or something later.
	had   map[storyTemplate]map[*storySource]contents
	first map[storyTemplate]map[*storySource]string
	// unseen says that who leads now has not seen the write of the template.
	unseen bool
}

// storyTemplate is a pod template: what others have written of it, and the revision of the last roll, which is empty if it has none.
type storyTemplate struct{ bare, revision string }

// contents are what may have been read of a source.
type contents map[string]bool

// bareOf returns what others than Keyturn have written of a pod template.
func bareOf(pod *corev1.PodTemplateSpec) string {
	bare := pod.DeepCopy()
	withoutOurMarks(nil, bare)
	return jsonOf(bare)
}

// storyPair is a workload and a source of its namespace, whether the workload wants it or not.
type storyPair struct {
	// now is what pods read that start now, heard is that as of the last event, and seen all that ever was. isFresh says that now was never before,
	// and that there was no event of that yet.
	now, heard string
	seen       contents
	isFresh    bool
	// born is what all pods have read, or something later. Since is what there was since then, and gone says that there was nothing at times.
	born  string
	since contents
	gone  bool
	// recorded is what there was since Keyturn has recorded the source, of which the record has the first.
	recorded contents
	// owed says that the pods have to be replaced: there is something that they cannot have.
	owed bool
	// certain says that the record has what the pods have: Keyturn has replaced them last, and has led all the time since.
	certain bool
}

func newStoryPair(now string) *storyPair {
	return &storyPair{now: now, heard: now, seen: contents{now: true}, recorded: contents{now: true}}
}

// forget says that nobody has to replace the pods for what has changed so far.
func (p *storyPair) forget() { p.owed, p.certain = false, false }

// replacePods takes in that a workload has another pod template. Pods of that template that are there already stay, and those of others go unless
// the rollout is stalled. Ours says that Keyturn has written it.
func (st *story) replacePods(w *storyWorkload, template storyTemplate, ours bool) {
	stay := slices.Contains(w.running, template)
	if w.had[template] == nil {
		w.had[template], w.first[template] = make(map[*storySource]contents), make(map[*storySource]string)
	}
	had, first := w.had[template], w.first[template]
	for of, pair := range w.pairs {
		if had[of] == nil {
			had[of] = make(contents)
		}
		had[of][pair.now] = true
		for other, read := range w.had {
			if !ours && other != template && other.bare == template.bare {
				maps.Copy(had[of], read[of]) // Going back may bring back pods.
			}
		}
		if !stay {
			first[of] = pair.now
		}
		pair.born, pair.since, pair.gone = first[of], contents{first[of]: true, pair.now: true}, pair.now == contentAbsent
		pair.owed, pair.certain = false, ours && !w.stalled
	}
	if !w.stalled {
		w.running = nil
	}
	w.running = append(slices.DeleteFunc(w.running, func(other storyTemplate) bool { return other == template }), template)
	w.template, w.unseen = template, false
}

// isBackAsRecorded reports whether a source that was gone may have what the record of a workload has: that of a single key is not compared. Pods that
// started meanwhile are left alone then, which is a known limit.
func (st *story) isBackAsRecorded(w *storyWorkload, of *storySource) bool {
	last, recorded := w.record[of.local]
	if st.options.RollOnCreate != plan.CreateAuto || !recorded || last.IsOwed() || last.IsDeleted() {
		return false
	}
	return last.Fingerprint == st.of(of.name).published.Fingerprint || w.refs[of.local].key != ""
}

// lacking returns the sources for which a workload has to be rolled, because its pods may not have what there is.
func (st *story) lacking(w *storyWorkload) []string {
	var names []string
	for _, of := range st.sourcesOf(w) {
		pair := w.pairs[of]
		isGone := pair.now == contentAbsent && (!st.options.RollOnDelete || !w.isOptional(of))
		if !st.wants(w, of) || of.ignored || isGone || pair.now == contentMissing {
			continue
		}
		if slices.ContainsFunc(w.running, func(template storyTemplate) bool { return w.had[template][of].hasOther(pair.now) }) {
			names = append(names, of.name)
		}
	}
	return names
}

// hasOther reports whether anything else may have been read.
func (c contents) hasOther(than string) bool {
	for content := range c {
		if content != than {
			return true
		}
	}
	return false
}

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
