package actuate

import (
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// storedAt returns an event that the stream stored at a sequence.
func storedAt(seq uint64, change events.Change) *events.Delivery {
	return &events.Delivery{Change: change, Seq: seq, StoredAt: written.Add(time.Duration(seq) * time.Second)}
}

func TestTheBaselineKeepsNoHeader(t *testing.T) {
	header := "shop db u 100 " + fp("b")
	change := changeOf(func(c *events.Change) {
		c.Source.Namespace, c.Source.Name, c.UID, c.ResourceVersion, c.Fingerprint = header[:4], header[5:7], header[8:9], header[10:13], header[14:]
	})
	known := make(baselines)
	known.next(storedAt(1, change), true)
	known.forget(change.Source)
	first, last := uintptr(unsafe.Pointer(unsafe.StringData(header))), uintptr(len(header))
	for source, kept := range known {
		for name, text := range map[string]string{
			"namespace": source.Namespace, "name": source.Name, "the event's name": kept.change.Source.Name, "uid": kept.change.UID,
			"version": kept.change.ResourceVersion, "fingerprint": kept.change.Fingerprint, "the position's uid": kept.at.uid,
			"the position's version": kept.at.version,
		} {
			if at := uintptr(unsafe.Pointer(unsafe.StringData(text))) - first; at < last {
				t.Errorf("%s is a part of the header", name)
			}
		}
	}
	if diff := cmp.Diff(change, known[change.Source].change); diff != "" {
		t.Errorf("the event before (-want +got):\n%s", diff)
	}
}

func TestTheBaselineIsTheEventBefore(t *testing.T) {
	at := func(version string, mutate func(*events.Change)) events.Change {
		return changeOf(func(c *events.Change) {
			c.ResourceVersion = version
			if mutate != nil {
				mutate(c)
			}
		})
	}
	deleted := func(c *events.Change) { c.Verb = events.VerbDeleted }
	ignored := func(c *events.Change) { c.Ignore = true }
	another := func(c *events.Change) { c.Source = app }
	tests := []struct {
		name   string
		before []events.Change
		now    events.Change
		want   string // its resourceVersion
	}{
		{name: "the first event has none", now: at("100", nil)},
		{name: "a later one has the one before", before: []events.Change{at("90", nil), at("95", nil)}, now: at("100", nil), want: "95"},
		{name: "one that comes again has none", before: []events.Change{at("90", nil), at("100", nil)}, now: at("100", nil)},
		{name: "the events of other sources do not count", before: []events.Change{at("90", another)}, now: at("100", nil)},
		{name: "a deletion says nothing of what the pods have", before: []events.Change{at("90", nil), at("95", deleted)}, now: at("100", nil)},
		{name: "nor does what was ignored", before: []events.Change{at("90", nil), at("95", ignored)}, now: at("100", nil)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			known := make(baselines)
			for i, change := range test.before {
				known.next(storedAt(uint64(i+1), change), true)
			}
			got := ""
			if from := known.next(storedAt(10, test.now), true); from != nil {
				got = from.ResourceVersion
			}
			if got != test.want {
				t.Errorf("got the event at %q, want the one at %q", got, test.want)
			}
		})
	}
	t.Run("nothing is kept of a source that concerns no workload", func(t *testing.T) {
		known := make(baselines)
		known.next(storedAt(1, at("90", nil)), true)
		if from := known.next(storedAt(2, at("95", nil)), false); from != nil || len(known) != 0 {
			t.Errorf("got %v, and %d events are kept", from, len(known))
		}
	})
	t.Run("one that a workload never got is not what the next is compared with", func(t *testing.T) {
		known := make(baselines)
		known.next(storedAt(1, at("90", nil)), true)
		known.forget(db)
		if from := known.next(storedAt(2, at("95", nil)), true); from != nil {
			t.Errorf("got the event at %q, want none", from.ResourceVersion)
		}
		if !known.isLate(storedAt(1, at("90", nil))) {
			t.Error("the event before comes late, and counts as the last")
		}
	})
}

func TestNothingIsKeptOfSourcesThatNoWorkloadReadsAnyMore(t *testing.T) {
	reader := workloadOf(t, "auto", wholeDB, nil)
	pattern := workloadOf(t, "configmap/team-*", workload.Reference{Kind: events.KindConfigMap, Name: "app"}, named("pattern", nil))
	l := loopOf(t, testOptions(), reader, pattern)
	team := events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "team-a"}
	for i, source := range []events.Source{db, team} {
		l.intake.take(t.Context(), storedAt(uint64(i+1), changeOf(func(c *events.Change) { c.Source = source })))
	}
	l.rollouts.canaries.require("shop", map[string]workload.RolledFor{"secret/db": {}, "configmap/team-a": {}})
	steps := []struct {
		gone *workload.Workload
		want int
	}{{nil, 2}, {reader, 1}, {pattern, 0}}
	for i, step := range steps {
		if step.gone != nil {
			l.intake.index.Forget(step.gone.Key(), step.gone.ID.UID, "")
		}
		l.prune()
		if got := len(l.intake.baselines); got != step.want {
			t.Errorf("step %d: %d sources are kept, want %d", i, got, step.want)
		}
		if got := len(l.rollouts.canaries.chosen); got != step.want {
			t.Errorf("step %d: one goes first with the changes of %d sources, want %d", i, got, step.want)
		}
	}
}

// A pattern matches each of them, so they would be kept for as long as the workload exists.
func TestNothingIsKeptForLongOfNamesThatCameAndWent(t *testing.T) {
	now := written
	options := testOptions()
	options.Now = func() time.Time { return now }
	l := loopOf(t, options, workloadOf(t, "configmap/*, secret/db", wholeDB, nil))
	deliver := func(seq uint64, name string, verb events.Verb) {
		l.intake.take(t.Context(), storedAt(seq, changeOf(func(c *events.Change) {
			c.Source, c.Verb = events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: name}, verb
		})))
	}
	deliver(1, "stays", events.VerbChanged)
	for i := range 100 {
		deliver(uint64(10+i), "churned-"+strconv.Itoa(i), events.VerbDeleted)
	}
	for _, step := range []struct{ after, want int }{{30, 101}, {90, 1}} {
		now = written.Add(time.Duration(step.after) * time.Minute)
		l.prune()
		if got := len(l.intake.baselines); got != step.want {
			t.Errorf("after %d minutes %d sources are kept, want %d", step.after, got, step.want)
		}
	}
}
