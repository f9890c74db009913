//go:build !race

package actuate_test

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
	// owed says that the pods have to be replaced: there is something that they cannot have.
	owed bool
	// certain says that the record has what the pods have: Keyturn has replaced them last, and has led all the time since.
	certain bool
}

func newStoryPair(now string) *storyPair {
	return &storyPair{now: now, heard: now, seen: contents{now: true}}
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
