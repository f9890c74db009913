//go:build !race

package actuate_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// storyWorkload is a workload of a story.
type storyWorkload struct {
	name         string
	isDeployment bool
	// refs are the sources that its pods read, by their local names.
	refs map[string]storyRef
	// annotations are its own, as others have written them.
	annotations map[string]string
	pairs       map[*storySource]*storyPair
	storyPods

	// stalled says that its new pods do not become ready, paused that people have paused it, and slow that patches of it take long.
	stalled, paused, slow bool
	// ill and denied say that patches of it fail, or are refused.
	ill, denied bool
	// operated says that an operator restores the pod template whenever it was rolled, and fought that one has done so.
	operated, fought bool
	// undo brings back what it was when it had the pod template kept. It is nil if nobody has kept that. undone says that this was done, and that
	// nothing has changed since.
	undo   func()
	kept   storyTemplate
	undone bool

	storyRecord
	// isBack says that the flags of who leads opt it in again.
	isBack bool
	// weak says that its rollouts or its patches have failed, or may have. From then on nobody has to wait for it, nor it for others.
	weak bool
	// events counts those of its sources, and others the writes of others, of which written is the last.
	events, others int
	written        time.Time
}

// storyRef is what pods read of a source: one key, or all if that is empty.
type storyRef struct {
	key      string
	optional bool
}

// The words for what pods read of a source that does not exist, or lacks the key that they read.
const (
	contentAbsent  = "absent"
	contentMissing = "missing"
)

// content returns what pods that start now read of a source.
func (w *storyWorkload) content(of *storySource) string {
	key := w.refs[of.local].key
	value, has := of.data[key]
	switch {
	case of.data == nil:
		return contentAbsent
	case key == "":
		return fmt.Sprint(of.data)
	case !has:
		return contentMissing
	}
	return value
}

// wave returns its wave.
func (w *storyWorkload) wave() int {
	wave, _ := strconv.Atoi(w.annotations["keyturn.dev/wave"]) // It is 0 without the annotation.
	return wave
}

// isHeldUp reports whether people or failures keep it from being rolled, so that nobody has to wait for it.
func (w *storyWorkload) isHeldUp() bool {
	for _, key := range []string{events.AnnotationHold, workload.AnnotationWindow, workload.AnnotationMinInterval} {
		if _, has := w.annotations[key]; has {
			return true
		}
	}
	return w.weak || w.slow || w.foreign
}

// isOptional reports whether the pods can start without a source.
func (w *storyWorkload) isOptional(of *storySource) bool {
	ref, read := w.refs[of.local]
	return !read || ref.optional
}

// sourcesOf returns the sources in the namespace of a workload.
func (st *story) sourcesOf(w *storyWorkload) []*storySource {
	return slices.DeleteFunc(slices.Clone(st.sources), func(of *storySource) bool { return w.pairs[of] == nil })
}

// wants reports whether a workload is to be rolled when a source changes.
func (st *story) wants(w *storyWorkload, of *storySource) bool {
	text, says := w.annotations[workload.AnnotationRollOn]
	_, read := w.refs[of.local]
	if !says {
		return st.options.RollAll && read
	}
	return slices.ContainsFunc(strings.Split(text, ", "), func(item string) bool {
		prefix, isPattern := strings.CutSuffix(item, "*")
		return item == "auto" && read || item == of.local || isPattern && strings.HasPrefix(of.local, prefix)
	})
}

// wanted returns the names of the sources that a workload wants.
func (st *story) wanted(w *storyWorkload) []string {
	var names []string
	for _, of := range st.sourcesOf(w) {
		if st.wants(w, of) {
			names = append(names, of.name)
		}
	}
	return names
}

// optIns are what people do to say what a workload rolls on.
var optIns = []aspect{
	auto, auto, auto, on("auto, configmap/a*"), on("configmap/a*"), on("secret/db, configmap/app"), on("none"), without(workload.AnnotationRollOn),
}

func (st *story) makeWorkload(number int) {
	kind := oneOf(st, "", "", "", "statefulset/", "daemonset/", "cronjob/")
	home := st.sources[len(st.sources)-1].namespace // It is that of the office, if there is one.
	if st.random.IntN(3) < 2 {
		home = namespace
	}
	w := &storyWorkload{
		name: fmt.Sprintf("%sweb-%d", kind, number), isDeployment: kind == "", refs: make(map[string]storyRef), pairs: make(map[*storySource]*storyPair),
		storyPods: storyPods{had: make(map[storyTemplate]map[*storySource]contents), first: make(map[storyTemplate]map[*storySource]string)},
	}
	if home != namespace {
		w.name = home + "/" + w.name
	}
	aspects := []aspect{oneOf(st, optIns...), image("example.com/app:0")}
	if st.onceIn(2) {
		aspects = append(aspects, inWave(st.random.IntN(3)))
	}
	for _, of := range st.sources {
		if of.namespace != home {
			continue
		}
		w.pairs[of] = newStoryPair(w.content(of))
		if len(w.refs) > 0 && st.onceIn(2) {
			continue
		}
		ref, text := storyRef{optional: st.onceIn(3)}, of.local
		switch {
		case ref.optional:
			text += "?"
		case st.onceIn(3):
			ref.key = oneOf(st, "password", "user")
			text += "#" + ref.key
		}
		w.refs[of.local] = ref
		w.pairs[of] = newStoryPair(w.content(of))
		aspects = append(aspects, reads(text))
	}
	st.workload(w.name, aspects...)
	st.workloads = append(st.workloads, w)
	st.reread(w, "")
	st.notef("%s reads %v and wants %v: %v", w.name, w.refs, st.wanted(w), w.annotations)
}

// reread takes in what others have written on a workload, given the revision that its pod template has then.
func (st *story) reread(w *storyWorkload, revision string) {
	wanted := st.wanted(w)
	about, pod := partsOf(st.object(w.name))
	maps.DeleteFunc(about.Annotations, func(name, _ string) bool { return isWrittenByUs(name) })
	w.annotations, w.undone = about.Annotations, false
	w.others, w.written = w.others+1, time.Now()
	if !slices.Equal(wanted, st.wanted(w)) {
		w.forget()
	}
	if template := (storyTemplate{bareOf(pod), revision}); template != w.template {
		st.replacePods(w, template, false)
	}
}

// forget forgets what a workload was to be rolled for.
func (w *storyWorkload) forget() {
	for _, pair := range w.pairs {
		pair.forget()
	}
}

// aWorkload returns a workload of which something is true, nil if there is none.
func (st *story) aWorkload(is func(*storyWorkload) bool) *storyWorkload {
	list := slices.DeleteFunc(slices.Clone(st.workloads), func(w *storyWorkload) bool { return !is(w) })
	if len(list) == 0 {
		return nil
	}
	return oneOf(st, list...)
}

// toOne does something to a workload of which something is true. It returns false if there is none.
func (st *story) toOne(is func(*storyWorkload) bool, do func(*storyWorkload)) bool {
	w := st.aWorkload(is)
	if w != nil {
		do(w)
	}
	return w != nil
}
