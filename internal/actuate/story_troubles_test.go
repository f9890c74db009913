//go:build !race

package actuate_test

import (
	"time"

	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// These are the troubles of a story with patches, and with others who write what Keyturn does. They come to an end.

// patchesFail lets patches of a workload fail, or no longer.
func (st *story) patchesFail() bool {
	w := oneOf(st, st.workloads...)
	if w.ill {
		st.accept(w)
		return true
	}
	if w.denied {
		return false
	}
	st.notef("patches of %s fail", w.name)
	st.refuse(w.name, unavailable())
	w.ill = true
	return true
}

// patchesAreDenied lets a policy refuse patches of a workload, or no longer.
func (st *story) patchesAreDenied() bool {
	w := oneOf(st, st.workloads...)
	if w.denied {
		st.accept(w)
	} else {
		st.deny(w)
	}
	return true
}

func (st *story) deny(w *storyWorkload) {
	st.notef("a policy refuses patches of %s", w.name)
	st.refuse(w.name, forbidden("ValidatingAdmissionPolicy 'frozen' denied request: it is Friday"))
	w.ill, w.denied, w.weak = false, true, true
}

// attempts counts the patches of a workload that the newest actuator has sent, refused ones included.
func (st *story) attempts(w *storyWorkload) int {
	id, count := parse(w.name), 0
	for _, action := range st.requests("patch", id.resource().Resource) {
		if patch, ok := action.(k8stesting.PatchAction); ok && patch.GetNamespace() == id.namespace && patch.GetName() == id.name {
			count++
		}
	}
	return count
}

// accept lets patches of a workload succeed.
func (st *story) accept(w *storyWorkload) {
	st.notef("patches of %s succeed", w.name)
	st.refuse(w.name, nil)
	w.ill, w.denied = false, false
}

// answersAreLost lets patches be carried out, and nobody hear of it.
func (st *story) answersAreLost() bool {
	st.notef("answers are lost")
	end := st.loseAnswers()
	st.unanswered = true
	changes := st.sourceChanges()
	st.wait(4 * time.Second)
	end()
	st.notef("answers arrive")
	st.wait(15 * time.Second)
	st.unanswered = false
	return changes
}

// recordIsRemoved has a tool remove all that Keyturn has written.
func (st *story) recordIsRemoved() bool {
	w := oneOf(st, st.workloads...)
	st.notef("a tool replaces %s", w.name)
	st.writeAs("kubectl-replace", w.name, withoutOurs)
	w.sinceNews = 0
	w.foreign = w.foreign || w.text != ""
	st.reread(w, "")
	st.look()
	return true
}

// recordComesBack has a manifest in Git bring back an earlier record.
func (st *story) recordComesBack() bool {
	return st.toOne(func(w *storyWorkload) bool { return w.manifest != "" && w.manifest != w.text && !w.foreign }, st.bringBack)
}

func (st *story) bringBack(w *storyWorkload) {
	st.notef("%s has an earlier record from Git: %s", w.name, w.manifest)
	if st.onceIn(2) {
		st.applyAs("argocd-controller", w.name, annotated(annotationRecord, w.manifest))
	} else {
		st.writeAs("argocd-controller", w.name, annotated(annotationRecord, w.manifest))
	}
	w.foreign, w.sinceNews = true, 0
	st.reread(w, w.template.revision)
	st.look()
}

// operatorComes has an operator keep the pod template of a Deployment as it knows it, or forget about that. It is faster than a rollout.
func (st *story) operatorComes() bool {
	if w := st.aWorkload(func(w *storyWorkload) bool { return w.operated }); w != nil {
		st.operatorGoes(w)
		return true
	}
	w := st.aWorkload(func(w *storyWorkload) bool { return w.isDeployment && !w.stalled })
	if w == nil {
		return false
	}
	st.notef("an operator keeps the pod template of %s", w.name)
	st.stall(w.name)
	w.stalled, w.operated, w.weak = true, true, true
	return true
}

func (st *story) operatorGoes(w *storyWorkload) {
	st.notef("the operator leaves %s alone", w.name)
	w.operated = false
	st.complete(w)
}

// operatorRestores has an operator restore a pod template once.
func (st *story) operatorRestores() bool {
	return st.toOne(func(w *storyWorkload) bool { return w.isDeployment && !w.stalled && w.template.revision != "" }, st.restore)
}

// restore removes what Keyturn has written on a pod template. The pods of before are still there, and ready.
func (st *story) restore(w *storyWorkload) {
	st.notef("an operator restores the pod template of %s", w.name)
	st.loosen(w.name)
	w.stalled, w.fought, w.weak = false, true, true
	st.writeAs("operator", w.name, withoutOurMarks)
	st.reread(w, "")
	if w.operated {
		st.stall(w.name)
		w.stalled = true
	}
	st.look()
}

// endTroubles ends everything that people, tools and machines have caused.
func (st *story) endTroubles() {
	st.notef("from now on, nothing more happens")
	if st.options.LeaderElect {
		st.leadNext()
	}
	for _, w := range st.workloads {
		w.operated = false
		if w.ill || w.denied {
			st.accept(w)
		}
		st.writeOn("person", w, without(events.AnnotationHold), without(workload.AnnotationWindow), without(workload.AnnotationMinInterval))
		if w.paused {
			st.pause(w, false)
		}
		st.complete(w)
		st.keep(w)
	}
	for _, of := range st.sources {
		wasHeld := of.held
		of.ignored, of.held = false, false
		switch {
		case of.data == nil:
			st.becomes(of, map[string]string{"password": st.freshValue(), "user": "app"})
		case wasHeld:
			st.annotate(of)
		}
	}
}

// disturb does some of what leaves everything as it is.
func (st *story) disturb() {
	of := oneOf(st, st.sources...)
	was := of.data
	st.becomes(of, map[string]string{"password": st.freshValue(), "user": "app"})
	st.wait(100 * time.Millisecond)
	st.becomes(of, was)
	st.wait(time.Minute)
	if st.onceIn(2) {
		st.isUndone()
	}
	if st.onceIn(2) {
		of.ignored = true
		st.annotate(of)
		st.becomes(of, map[string]string{"password": st.freshValue(), "user": "app"})
	}
	if gone := st.existing(); st.onceIn(2) {
		st.becomes(gone, nil)
		st.wait(5 * time.Second)
		st.becomes(gone, gone.last)
	}
	if st.calm {
		return
	}
	if w := st.aWorkload(func(w *storyWorkload) bool { return w.manifest != "" && w.manifest != w.text && w.recordedNow < 3 }); w != nil {
		st.bringBack(w)
		st.wait(2 * time.Minute)
	}
	if st.onceIn(2) {
		st.loseEvents()
		st.wait(20 * time.Second)
		st.publishAgain()
	}
}
