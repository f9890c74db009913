package actuate

import (
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// canaries lets one workload of a namespace go first with a change. It does so for every change, or only after a workload there failed to roll for
// the change and was repaired by hand. Undoing its rollout does not show whether the content is good, and it may be as bad for the others.
type canaries struct {
	// always is --canary: one workload goes first with each change, and its pods must stay ready for its Bake.
	always     bool
	index      *inventory.Index
	candidates *candidates
	// unfinished reports whether a workload is not finished with a change of a source. begun reports whether it is being patched or rolled for it.
	unfinished, begun func(workload.Key, events.Source) bool
	// chosen maps a change to the workload that goes first, or to the zero Key if none was started yet.
	chosen map[sourceChange]workload.Key
	// passed are the changes, as far as known, with which a workload has already gone first.
	passed map[sourceChange]struct{}
}

// sourceChange is one change of a source, as the workloads of one namespace read it.
type sourceChange struct{ namespace, source, version, uid string }

func sourceChangeOf(namespace, source string, change workload.RolledFor) sourceChange {
	return sourceChange{namespace, source, change.Version, change.UID}
}

// isOf reports whether a workload was last rolled for the change, or has recorded that its pods have it.
func (s sourceChange) isOf(w *workload.Workload) bool {
	return w.Rolled[s.source].SameChange(workload.RolledFor{Version: s.version, UID: s.uid})
}

// about returns the source, and false if its name is not valid.
func (s sourceChange) about() (events.Source, bool) {
	source, err := events.ParseSource(s.source)
	return workload.SourceNamed(source.Kind, s.namespace, source.Name), err == nil
}

func newCanaries(always bool, candidates *candidates, unfinished, begun func(workload.Key, events.Source) bool) *canaries {
	return &canaries{
		always: always, index: candidates.index, candidates: candidates, unfinished: unfinished, begun: begun,
		chosen: make(map[sourceChange]workload.Key), passed: make(map[sourceChange]struct{}),
	}
}

// require makes a workload of a namespace go first with each of the changes. They replace earlier changes of the same sources.
func (c *canaries) require(namespace string, changes map[string]workload.RolledFor) {
	maps.DeleteFunc(c.chosen, func(of sourceChange, _ workload.Key) bool {
		change, again := changes[of.source]
		return again && of.namespace == namespace && !workload.Newer(of.version, change.Version)
	})
	for source, change := range changes {
		of := sourceChangeOf(namespace, source, change)
		c.chosen[of] = workload.Key{}
		delete(c.passed, of)
	}
}

// prune drops the changes of sources that no workload reads any more. It also drops which workload went first with a change that is not pending any
// more, because it can be found again. A workload may be held for months while others roll for each change.
func (c *canaries) prune(isRead func(events.Source) bool) {
	isOver := func(of sourceChange) bool {
		source, ok := of.about()
		return ok && (!isRead(source) || c.always && !c.candidates.isPending(of, source))
	}
	maps.DeleteFunc(c.chosen, func(of sourceChange, _ workload.Key) bool { return isOver(of) })
	maps.DeleteFunc(c.passed, func(of sourceChange, _ struct{}) bool { return isOver(of) })
}

// forget drops what is cached only for the time of a dispatch.
func (c *canaries) forget() { c.candidates.forget() }

// stop returns the workload that goes first with a change if this one must wait for it, and nil otherwise.
func (c *canaries) stop(w *workload.Workload, decision *plan.Decision) *workload.Workload {
	of, source := sourceChangeOf(w.ID.Namespace, decision.Source.String(), decision.Record), decision.Source
	c.find(of, source)
	key, required := c.chosen[of]
	if !required || key == w.Key() {
		return nil
	}
	canary := c.index.Get(key)
	switch {
	case key == workload.Key{}:
	case canary != nil && c.unfinished(key, source) && !c.begun(key, source) && (c.always || c.yields(canary, w)):
		c.chosen[of] = workload.Key{}
	case canary != nil && (c.unfinished(key, source) || c.always && c.candidates.isUnderWay(canary)):
		return canary
	case canary != nil && !canary.Unserved && of.isOf(canary) && !canary.IsReplaced() && (!c.always || isReady(canary)):
		// It succeeded. If it had failed, it would be a failed peer.
		c.pass(of)
		return nil
	default:
		// The canary is gone, its kind is not served, it could not be rolled, has no pods any more, or waits for people. Another workload goes first.
		c.chosen[of] = workload.Key{}
	}
	if !c.always {
		return nil
	}
	return c.candidates.before(w, of, source)
}

// find looks for the workload that an earlier leader let go first with a change, if one has to go first with every change.
func (c *canaries) find(of sourceChange, source events.Source) {
	_, known := c.chosen[of]
	if _, passed := c.passed[of]; known || passed || !c.always {
		return
	}
	if key, done := c.candidates.found(of, source); done {
		c.pass(of)
	} else {
		c.chosen[of] = key
	}
}

// pass records that no workload needs to go first with a change any more.
func (c *canaries) pass(of sourceChange) {
	delete(c.chosen, of)
	if c.always {
		c.passed[of] = struct{}{}
	}
}

// bake returns how long the pods of a workload must stay ready after a rollout. Zero means that nobody waits for that.
func (c *canaries) bake(w *workload.Workload, r *rollout) time.Duration {
	if !c.isTrying(w, workload.ChangesOf(r.started), r.own) {
		return 0
	}
	return w.Bake()
}

// isTrying reports whether a workload that was rolled for changes goes first with one of them, and others wait to see whether its pods stay ready.
// Own says that this actuator has rolled it. If not, others may be waiting even though that has not been seen yet.
func (c *canaries) isTrying(w *workload.Workload, changes map[string]workload.RolledFor, own bool) bool {
	if !c.always || !w.Tries() || w.Bake() == 0 {
		return false
	}
	for source, change := range changes {
		of := sourceChangeOf(w.ID.Namespace, source, change)
		if about, ok := of.about(); ok {
			c.find(of, about)
		}
	}
	for of, key := range c.chosen {
		if key != w.Key() {
			continue
		}
		source, ok := of.about()
		if ok && (c.candidates.isAwaited(of, source, key) || !own && c.candidates.isMissing(of, source)) {
			return true
		}
	}
	return false
}

// yields reports whether a canary that is neither being patched nor rolled out lets another workload go first: one of a lower wave, for which it may
// be waiting; one of its own wave, if its patch has failed; or the canary of another change, since each may be waiting for the other. If several
// wait for each other in a circle, the one with the lowest wave and name goes.
func (c *canaries) yields(canary, w *workload.Workload) bool {
	if canary.Wave != w.Wave {
		return canary.Wave > w.Wave
	}
	if c.candidates.hasFailed(canary) {
		return true
	}
	for _, key := range c.chosen {
		if key == w.Key() {
			return canary.ID.String() > w.ID.String()
		}
	}
	return false
}

// start records that a workload is being rolled.
func (c *canaries) start(w *workload.Workload, doing []plan.Decision) {
	for _, decision := range doing {
		of := sourceChangeOf(w.ID.Namespace, decision.Source.String(), decision.Record)
		if key, required := c.chosen[of]; required && key == (workload.Key{}) && (!c.always || w.Tries()) {
			c.chosen[of] = w.Key()
		}
	}
}
