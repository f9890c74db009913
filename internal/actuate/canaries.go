package actuate

import (
	"maps"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// canaries has one workload of a namespace go first with a change after another one there failed to roll for it and was repaired by hand: undoing
// its rollout says nothing about the content, which may be as bad for the others.
type canaries struct {
	index *index
	// unfinished reports whether a workload is not finished with a change of a source, and begun whether it is being patched or rolled out for it.
	unfinished, begun func(workload.Key, events.Source) bool
	// chosen has the workload that goes first, by change; the zero Key if none was started yet.
	chosen map[sourceChange]workload.Key
}

// sourceChange is one change of a source, as the workloads of one namespace read it.
type sourceChange struct{ namespace, source, version, uid string }

func sourceChangeOf(namespace, source string, change workload.RolledFor) sourceChange {
	return sourceChange{namespace, source, change.Version, change.UID}
}

func newCanaries(index *index, unfinished, begun func(workload.Key, events.Source) bool) *canaries {
	return &canaries{index: index, unfinished: unfinished, begun: begun, chosen: make(map[sourceChange]workload.Key)}
}

// require has a workload of a namespace go first with each change, instead of with earlier ones of the same sources.
func (c *canaries) require(namespace string, changes map[string]workload.RolledFor) {
	maps.DeleteFunc(c.chosen, func(of sourceChange, _ workload.Key) bool {
		_, again := changes[of.source]
		return again && of.namespace == namespace
	})
	for source, change := range changes {
		c.chosen[sourceChangeOf(namespace, source, change)] = workload.Key{}
	}
}

// prune drops the changes of sources that no workload reads any more.
func (c *canaries) prune(isRead func(events.Source) bool) {
	maps.DeleteFunc(c.chosen, func(of sourceChange, _ workload.Key) bool {
		source, err := events.ParseSource(of.source)
		return err != nil || !isRead(workload.SourceNamed(source.Kind, of.namespace, source.Name))
	})
}

// stop returns the workload that goes first with a change, if this one must wait for it. Nil: it need not wait.
func (c *canaries) stop(w *workload.Workload, decision *plan.Decision) *workload.Workload {
	of := sourceChangeOf(w.ID.Namespace, decision.Source.String(), decision.Record)
	key, required := c.chosen[of]
	if !required || key == w.Key() || key == (workload.Key{}) {
		return nil
	}
	canary := c.index.get(key)
	switch {
	case canary != nil && c.unfinished(key, decision.Source) && !c.begun(key, decision.Source) && c.yields(canary, w):
		c.chosen[of] = workload.Key{}
	case canary != nil && c.unfinished(key, decision.Source):
		return canary
	case canary != nil && canary.Rolled[of.source].SameChange(decision.Record):
		// It succeeded. If it had failed, it would be a failed peer.
		delete(c.chosen, of)
	default:
		// It is gone, or could not be rolled: another one goes first.
		c.chosen[of] = workload.Key{}
	}
	return nil
}

// yields reports whether a canary whose patch has failed lets another workload go first, because it may be waiting for that one: a workload of a
// lower wave, or the canary of another change. Of those in a circle the one with the lowest wave and name goes.
func (c *canaries) yields(canary, w *workload.Workload) bool {
	if canary.Wave != w.Wave {
		return canary.Wave > w.Wave
	}
	for _, key := range c.chosen {
		if key == w.Key() {
			return canary.ID.String() > w.ID.String()
		}
	}
	return false
}

// start takes a workload that is being rolled.
func (c *canaries) start(w *workload.Workload, doing []plan.Decision) {
	for _, decision := range doing {
		of := sourceChangeOf(w.ID.Namespace, decision.Source.String(), decision.Record)
		if key, required := c.chosen[of]; required && key == (workload.Key{}) {
			c.chosen[of] = w.Key()
		}
	}
}
