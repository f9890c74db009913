package actuate

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// The failed workload has a pending change that may repair it. A lower wave goes first with that change, but waits for a still lower one, and that
// one waits for the repair.
func TestARepairWaitsForNobodyWhoWaitsForItThroughAnother(t *testing.T) {
	secret := func(name string) workload.Reference { return workload.Reference{Kind: events.KindSecret, Name: name} }
	changed := func(name string) events.Change {
		return changeOf(func(c *events.Change) { c.Source.Name, c.UID = name, "uid-"+name })
	}
	reads := func(name string, wave int, sources ...string) *workload.Workload {
		return workloadOf(t, "auto", secret(sources[0]), named(name, func(w *workload.Workload) {
			w.Wave = wave
			for _, source := range sources[1:] {
				w.Refs = append(w.Refs, secret(source))
			}
		}))
	}
	first, between, failed := reads("first", 0, "bad", "other"), reads("between", 1, "other", "repair"), reads("failed", 2, "repair", "bad")
	failed.Rolled = map[string]workload.RolledFor{"secret/bad": {Fingerprint: fp("b"), Version: "100", UID: "uid-bad"}}
	options := testOptions()
	for _, order := range [][]*workload.Workload{{first, between, failed}, {failed, between, first}} {
		l := loopOf(t, options, first, between, failed)
		l.rollouts.peers.add(failed.Key())
		pending := map[*workload.Workload][]string{first: {"bad", "other"}, between: {"other", "repair"}, failed: {"repair"}}
		for w, sources := range pending {
			for _, source := range sources {
				l.debounce.pend(w, changed(source))
			}
		}
		for _, w := range order {
			l.debounce.schedule(l.debounce.byKey[w.Key()], written)
			l.dispatcher.dispatch(t.Context())
		}
		if !l.debounce.isHeldFor(first.Key(), plan.PeerFailed) || !l.debounce.isHeldFor(between.Key(), plan.LowerWave) {
			t.Errorf("the others do not wait: %+v", l.debounce.byKey)
		}
		if !l.patcher.busy(failed.Key()) {
			t.Error("the one that failed waits for those that wait for it")
			continue
		}
		l.completion.finish(t.Context(), <-l.patcher.results)
	}
}
