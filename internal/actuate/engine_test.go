package actuate

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// testOptions are those of an actuator that talks to nobody. The time is that of the tests' events.
func testOptions() Options {
	options := DefaultOptions()
	options.Cluster, options.Client = "demo", fake.NewClientset()
	options.Logger = slog.New(slog.DiscardHandler)
	options.Tracer, options.Meter = tracenoop.NewTracerProvider().Tracer(""), metricnoop.NewMeterProvider().Meter("")
	options.Now = func() time.Time { return written }
	return options
}

// engineOf is an engine that knows the workloads. Nothing runs: a test calls what the loop would.
func engineOf(t *testing.T, options Options, workloads ...*workload.Workload) *engine {
	t.Helper()
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workloads {
		a.index.observe(w, false)
	}
	return newEngine(a, newReporter(a, newKubeEvents(a.options, a.log, a.metrics.dropEvent)))
}

// ticketOf is the ticket of an event.
func ticketOf(t *testing.T, change events.Change) *ticket {
	return &ticket{delivery: &events.Delivery{Change: change}, ctx: t.Context(), span: trace.SpanFromContext(t.Context())}
}

// pend has a workload wait with a claim.
func (e *engine) pend(w *workload.Workload, change events.Change) *pending {
	p := e.queue.want(w.Key(), written)
	p.claims[change.Source] = &claim{change: change}
	return p
}

// named gives the workload another name, for tests with several.
func named(name string, mutate func(*workload.Workload)) func(*workload.Workload) {
	return func(w *workload.Workload) {
		w.ID.Name, w.ID.UID = name, "uid-"+name
		if mutate != nil {
			mutate(w)
		}
	}
}

var wholeDB = workload.Reference{Kind: events.KindSecret, Name: "db"}

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
			e := &engine{known: make(map[events.Source]events.Change)}
			for _, change := range test.before {
				e.baseline(change, true)
			}
			got := ""
			if from := e.baseline(test.now, true); from != nil {
				got = from.ResourceVersion
			}
			if got != test.want {
				t.Errorf("got the event at %q, want the one at %q", got, test.want)
			}
		})
	}
	t.Run("nothing is kept of a source that concerns no workload", func(t *testing.T) {
		e := &engine{known: make(map[events.Source]events.Change)}
		e.baseline(at("90", nil), true)
		if from := e.baseline(at("95", nil), false); from != nil || len(e.known) != 0 {
			t.Errorf("got %v, and %d events are kept", from, len(e.known))
		}
	})
}

func TestAChangeThatConcernsAWorkloadWaitsUntilItIsQuiet(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	options := testOptions()
	now := written
	options.Now = func() time.Time { return now }
	e := engineOf(t, options, w)
	first, last := ticketOf(t, changeOf(nil)), ticketOf(t, changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt = "101", "101" }))
	e.consider(first, w, nil)
	if due, _ := e.queue.next(); !due.Equal(written.Add(options.Settle)) {
		t.Errorf("the first change is due %s later, want %s", due.Sub(written), options.Settle)
	}
	now = written.Add(options.Settle / 2)
	e.consider(last, w, nil)
	if due, _ := e.queue.next(); !due.Equal(now.Add(options.Settle)) {
		t.Errorf("a further change is due %s later, want %s", due.Sub(now), options.Settle)
	}
	c := e.queue.byKey[w.Key()].claims[db]
	if len(e.queue.byKey) != 1 || c.change.ResourceVersion != "101" || len(c.tickets) != 2 || first.open != 1 || last.open != 1 {
		t.Errorf("%d workloads wait, with %+v; want one claim of the last change, with both tickets", len(e.queue.byKey), c)
	}
	now = written.Add(options.SettleMax - options.Settle/2)
	e.consider(last, w, nil)
	if due, _ := e.queue.next(); !due.Equal(written.Add(options.SettleMax)) {
		t.Errorf("a change at the last moment is due %s after the first, want %s", due.Sub(written), options.SettleMax)
	}
}

func TestAChangeThatNeedsNothingIsToldAtOnce(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "80", UID: "uid"}}
	})
	e := engineOf(t, testOptions(), w)
	ticket := ticketOf(t, changeOf(nil))
	e.consider(ticket, w, nil)
	if ticket.open != 0 || len(e.queue.byKey) != 0 {
		t.Errorf("%d workloads are open, %d wait", ticket.open, len(e.queue.byKey))
	}
	if len(e.reporter.waiting) != 1 {
		t.Fatalf("%d outcomes are told", len(e.reporter.waiting))
	}
	if outcome := e.reporter.waiting[0].outcome; outcome.Verb != events.VerbSkipped || outcome.Reason != plan.SameContent.String() {
		t.Errorf("it is told as %s, %s", outcome.Verb, outcome.Reason)
	}
}

func TestNothingIsConcludedWhileAPatchIsUnderWay(t *testing.T) {
	// By its record the workload has this content. But the patch under way is about to write another record.
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "80", UID: "uid"}}
	})
	e := engineOf(t, testOptions(), w)
	e.inFlight[w.Key()] = &roll{workload: w}
	ticket := ticketOf(t, changeOf(nil))
	e.consider(ticket, w, nil)
	if ticket.open != 1 || e.queue.byKey[w.Key()] == nil {
		t.Errorf("%d workloads are open, want the change to wait for the patch", ticket.open)
	}
}

func TestAWorkloadWaitsForAPeerThatFailed(t *testing.T) {
	password := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}}
	rolledFor := func(version, uid string) func(*workload.Workload) {
		return named("canary", func(w *workload.Workload) {
			w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: version, UID: uid}}
		})
	}
	tests := []struct {
		name   string
		peer   func(*workload.Workload)
		change func(*events.Change)
		want   plan.Reason
	}{
		{name: "that was rolled for the same change", peer: rolledFor("100", "uid"), want: plan.PeerFailed},
		{
			name: "also when an event about another key came since", peer: rolledFor("100", "uid"),
			change: func(c *events.Change) {
				c.ResourceVersion, c.ChangedAt, c.Changed = "110", "110", []string{"user"}
				c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "110"}
			},
			want: plan.PeerFailed,
		},
		{
			name: "but not when the content has changed since: that may mend it", peer: rolledFor("100", "uid"),
			change: func(c *events.Change) {
				c.ResourceVersion, c.ChangedAt = "110", "110"
				c.Keys["password"] = events.Key{Fingerprint: fp("4"), ChangedAt: "110"}
			},
			want: plan.None,
		},
		{name: "but not when it was rolled for an earlier change", peer: rolledFor("90", "uid"), want: plan.None},
		{name: "but not when it was rolled for another source of this name", peer: rolledFor("100", "another"), want: plan.None},
		{name: "but not when it was never rolled for the source", peer: named("canary", nil), want: plan.None},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, peer := workloadOf(t, "auto", password, nil), workloadOf(t, "auto", password, test.peer)
			e := engineOf(t, testOptions(), w, peer)
			e.failed[peer.Key()] = struct{}{}
			if got := e.obstacle(w, e.pend(w, changeOf(test.change))); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	t.Run("but not for itself", func(t *testing.T) {
		w := workloadOf(t, "auto", password, rolledFor("100", "uid"))
		e := engineOf(t, testOptions(), w)
		e.failed[w.Key()] = struct{}{}
		if got := e.obstacle(w, e.pend(w, changeOf(nil))); got != plan.None {
			t.Errorf("got %s", got)
		}
	})
}

func TestAWorkloadWaitsForLowerWaves(t *testing.T) {
	started := events.Outcome{Sources: []events.OutcomeSource{{Source: "secret/db"}}}
	tests := []struct {
		name     string
		wave     int
		peerWave int
		peer     func(*engine, *workload.Workload)
		want     plan.Reason
	}{
		{"that wait to be rolled for the same source", 1, 0, func(e *engine, peer *workload.Workload) { e.pend(peer, changeOf(nil)) }, plan.LowerWave},
		{"that are being patched for it", 1, 0, func(e *engine, peer *workload.Workload) {
			p := e.pend(peer, changeOf(nil))
			e.queue.drop(p)
			e.inFlight[peer.Key()] = &roll{workload: peer, pending: p}
		}, plan.LowerWave},
		{"that are being rolled out for it", 1, 0, func(e *engine, peer *workload.Workload) { e.rollouts[peer.Key()] = &rollout{started: started} }, plan.LowerWave},
		{"a wave may be negative", 0, -1, func(e *engine, peer *workload.Workload) { e.pend(peer, changeOf(nil)) }, plan.LowerWave},
		{"but not for those of its own wave", 1, 1, func(e *engine, peer *workload.Workload) { e.pend(peer, changeOf(nil)) }, plan.None},
		{"nor for those of a higher one", 0, 1, func(e *engine, peer *workload.Workload) { e.pend(peer, changeOf(nil)) }, plan.None},
		{"nor for those that have nothing to do", 1, 0, func(*engine, *workload.Workload) {}, plan.None},
		{"nor for those that wait for another source", 1, 0, func(e *engine, peer *workload.Workload) {
			e.pend(peer, changeOf(func(c *events.Change) { c.Source = app }))
		}, plan.None},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Wave = test.wave })
			peer := workloadOf(t, "auto", wholeDB, named("peer", func(w *workload.Workload) { w.Wave = test.peerWave }))
			e := engineOf(t, testOptions(), w, peer)
			test.peer(e, peer)
			if got := e.obstacle(w, e.pend(w, changeOf(nil))); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestNoMoreRolloutsAreInProgressThanAllowed(t *testing.T) {
	running := workload.Progress{State: workload.Progressing, Pods: 3}
	tests := []struct {
		name  string
		limit int
		// others are the states of those that are being rolled out.
		others []workload.Progress
		// patched says that a patch is under way to one more.
		patched bool
		pods    int32
		want    plan.Reason
	}{
		{name: "a place is free", limit: 2, others: []workload.Progress{running}, pods: 3, want: plan.None},
		{name: "no place is free", limit: 2, others: []workload.Progress{running, running}, pods: 3, want: plan.Limit},
		{name: "a patch that is under way takes a place", limit: 2, others: []workload.Progress{running}, patched: true, pods: 3, want: plan.Limit},
		{name: "a rollout without pods takes none", limit: 1, others: []workload.Progress{{State: workload.Progressing, Pods: 0}}, pods: 3, want: plan.None},
		{name: "nor does one that waits for a person", limit: 1, others: []workload.Progress{{State: workload.Waiting, Pods: 3}}, pods: 3, want: plan.None},
		{name: "a workload without pods needs none", limit: 1, others: []workload.Progress{running}, pods: 0, want: plan.None},
		{name: "there is no limit", limit: 0, others: []workload.Progress{running, running, running}, pods: 3, want: plan.None},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Progress.Pods = test.pods })
			options := testOptions()
			options.MaxRollouts = test.limit
			e := engineOf(t, options, w)
			for i, state := range test.others {
				other := workloadOf(t, "auto", wholeDB, named(strconv.Itoa(i), func(w *workload.Workload) { w.Progress = state }))
				e.index.observe(other, false)
				e.rollouts[other.Key()] = &rollout{}
			}
			if test.patched {
				other := workloadOf(t, "auto", wholeDB, named("patched", func(w *workload.Workload) { w.Progress = running }))
				e.inFlight[other.Key()] = &roll{workload: other, rolls: true}
			}
			if got := e.obstacle(w, e.pend(w, changeOf(nil))); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
