package actuate

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// shared is a secret in a store that workloads of several namespaces read.
var shared = events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shared"}.Source()

// rotated returns a change of shared.
func rotated() events.Change {
	return changeOf(func(c *events.Change) { c.Source, c.Verb, c.Keys, c.Truncated = shared, events.VerbRotated, nil, true })
}

// tenantOf returns a workload of a namespace that reads the shared secret.
func tenantOf(t *testing.T, namespace, name string, mutate func(*workload.Workload)) *workload.Workload {
	t.Helper()
	return workloadOf(t, "openbao:secret/shared", workload.Reference{}, func(w *workload.Workload) {
		w.ID.Namespace, w.ID.Name, w.ID.UID, w.Progress.Pods = namespace, name, namespace+"-"+name, 1
		if mutate != nil {
			mutate(w)
		}
	})
}

func TestNoWorkloadOfAnotherNamespaceHoldsOne(t *testing.T) {
	done := map[string]workload.RolledFor{shared.String(): decisionOf(tenantOf(t, "shop", "web", nil), rotated(), nil).Record}
	tests := []struct {
		name string
		// other sets up the other workload, and way puts it in the way.
		other func(*workload.Workload)
		way   func(*loop, *workload.Workload)
		want  plan.Reason
	}{
		{
			name: "by a lower wave", other: func(w *workload.Workload) { w.Wave = -1000 },
			way: func(l *loop, w *workload.Workload) { l.debounce.pend(w, rotated()) }, want: plan.LowerWave,
		},
		{
			name: "by a rollout that failed for the same change", other: func(w *workload.Workload) { w.Rolled, w.Revision = done, "r1" },
			way: func(l *loop, w *workload.Workload) { l.rollouts.peers.add(w.Key()) }, want: plan.PeerFailed,
		},
		{
			name: "by going first after one that was repaired", other: func(*workload.Workload) {},
			way: func(l *loop, w *workload.Workload) {
				l.rollouts.canaries.require(w.ID.Namespace, done)
				l.rollouts.canaries.start(w, []plan.Decision{decisionOf(w, rotated(), nil)})
				l.debounce.pend(w, rotated())
			}, want: plan.CanaryFirst,
		},
	}
	for _, test := range tests {
		for namespace, want := range map[string]plan.Reason{"shop": test.want, "bank": plan.None} {
			t.Run(test.name+", in "+namespace, func(t *testing.T) {
				w, other := tenantOf(t, "shop", "web", nil), tenantOf(t, namespace, "other", test.other)
				l := loopOf(t, testOptions(), w, other)
				test.way(l, other)
				l.debounce.pend(w, rotated())
				if got := l.dispatcher.admission.obstacle(w, []plan.Decision{decisionOf(w, rotated(), nil)}, written).reason; got != want {
					t.Errorf("it waits for %q, want %q", got, want)
				}
			})
		}
	}
}

func TestARequirementToGoFirstEndsThatOfItsOwnNamespaceOnly(t *testing.T) {
	l := loopOf(t, testOptions())
	c := l.rollouts.canaries
	c.require("shop", map[string]workload.RolledFor{"secret/db": {Version: "1", UID: "shop-db"}})
	c.require("bank", map[string]workload.RolledFor{"secret/db": {Version: "2", UID: "bank-db"}})
	if len(c.chosen) != 2 {
		t.Errorf("changes with which one goes first: %v, want one of each namespace", c.chosen)
	}
}

func TestTheNamespacesTakeTurns(t *testing.T) {
	q := newTurns()
	push := func(namespace string, names ...string) {
		for _, name := range names {
			q.push(newPending(workload.Key{Kind: "deployment", Namespace: namespace, Name: name}, written))
		}
	}
	push("a", "a1", "a2", "a3")
	push("b", "b1")
	push("c", "c1", "c2")
	var got []string
	for range 3 {
		got = append(got, q.pop(inAny).key.Name)
	}
	push("b", "b2")
	got = append(got, q.pop(func(namespace string) bool { return namespace == "c" }).key.Name)
	for p := q.pop(inAny); p != nil; p = q.pop(inAny) {
		got = append(got, p.key.Name)
	}
	if want := []string{"a1", "b1", "c1", "c2", "a2", "b2", "a3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(q.order) != 0 || len(q.waiting) != 0 || len(q.queued) != 0 {
		t.Errorf("left behind: %v", q)
	}
}

// crowd returns a loop of an actuator with a crowd of workloads in the namespace bank that have a change, and one in shop that has its change last.
func crowd(t *testing.T, options Options, replicas int32) (l *loop, last *workload.Workload) {
	t.Helper()
	last = tenantOf(t, "shop", "web", func(w *workload.Workload) { w.Progress.Pods = replicas })
	l = loopOf(t, options, last)
	for i := range 500 {
		w := tenantOf(t, "bank", fmt.Sprintf("many-%03d", i), func(w *workload.Workload) { w.Progress.Pods = replicas })
		l.dispatcher.index.Listed(w, "")
		l.debounce.schedule(l.debounce.pend(w, rotated()), written.Add(time.Duration(i-1000)*time.Millisecond))
	}
	l.debounce.schedule(l.debounce.pend(last, rotated()), written)
	return l, last
}

// started returns how many workloads of a namespace are being patched.
func started(l *loop, namespace string) int {
	n := 0
	for key := range l.patcher.underWay {
		if key.Namespace == namespace {
			n++
		}
	}
	return n
}

func TestTheWorkloadsOfOneNamespaceKeepThePatchesFromNoOther(t *testing.T) {
	l, last := crowd(t, testOptions(), 0)
	l.dispatcher.dispatch(t.Context())
	defer func() {
		for range l.patcher.drain() {
		}
	}()
	if started(l, "bank") == 0 || !l.patcher.busy(last.Key()) {
		t.Errorf("%d patches of the crowd are under way, and that of the other namespace: %t", started(l, "bank"), l.patcher.busy(last.Key()))
	}
}

func TestTheWorkloadsOfOneNamespaceLeaveSlotsToAnother(t *testing.T) {
	options := testOptions()
	options.MaxRollouts, options.PatchWorkers = 10, 100
	l, last := crowd(t, options, 1)
	l.debounce.take(l.debounce.byKey[last.Key()]) // its change comes later
	l.dispatcher.dispatch(t.Context())
	defer func() {
		for range l.patcher.drain() {
		}
	}()
	if n := started(l, "bank"); n != 5 {
		t.Errorf("%d of the crowd have begun, want 5: half of the slots", n)
	}
	l.debounce.schedule(l.debounce.byKey[last.Key()], written)
	l.dispatcher.dispatch(t.Context())
	if !l.patcher.busy(last.Key()) {
		t.Errorf("the other namespace waits for %q", l.debounce.byKey[last.Key()].held)
	}
}

func TestAWorkloadThatIsDueKeepsItsTurnWhenAnotherChangeComes(t *testing.T) {
	d := newDebounce(time.Second, time.Minute)
	first, second := tenantOf(t, "bank", "first", nil), tenantOf(t, "bank", "second", nil)
	third := tenantOf(t, "bank", "third", nil)
	now := written
	for _, w := range []*workload.Workload{first, second, third} {
		d.add(w, eventOf(rotated()), nil, now)
		now = now.Add(time.Millisecond)
	}
	now = now.Add(time.Second)
	if p := d.pop(now, inAny); p.key != first.Key() {
		t.Fatalf("%v is first", p.key)
	}
	again := eventOf(rotated())
	d.add(second, again, nil, now)
	p := d.pop(now, inAny)
	if p == nil || p.key != second.Key() || p.changes[shared].event != again {
		t.Fatalf("got %+v, want the second with its last event", p)
	}
	if p := d.pop(now, inAny); p == nil || p.key != third.Key() {
		t.Errorf("got %+v, want the third", p)
	}
}

func TestSlotsGoToTheNamespacesInTurn(t *testing.T) {
	options := testOptions()
	options.MaxRollouts = 1
	var workloads []*workload.Workload
	for _, namespace := range []string{"a", "b", "c"} {
		for i := range 2 {
			workloads = append(workloads, tenantOf(t, namespace, strconv.Itoa(i), nil))
		}
	}
	busy := tenantOf(t, "z", "busy", nil)
	l := loopOf(t, options, append(workloads, busy)...)
	l.rollouts.following.follow(busy.Key(), &rollout{})
	for i, w := range workloads {
		p := l.debounce.pend(w, rotated())
		p.first = written.Add(time.Duration(i) - time.Minute)
		l.debounce.schedule(p, p.first)
	}
	l.dispatcher.dispatch(t.Context())
	l.rollouts.following.unfollow(busy.Key())
	var order []string
	for range workloads {
		// It makes no difference how often those that wait are looked at meanwhile.
		l.debounce.releaseAll(written)
		l.dispatcher.dispatch(t.Context())
		for key, r := range l.patcher.underWay {
			order = append(order, key.Namespace)
			<-l.patcher.results
			l.patcher.finished(r)
		}
	}
	if want := []string{"a", "b", "c", "a", "b", "c"}; !slices.Equal(order, want) {
		t.Errorf("the slots went to %q, want %q", order, want)
	}
}

func TestTheEndOfARolloutWakesNobodyElsewhere(t *testing.T) {
	held, neighbour := tenantOf(t, "bank", "held", nil), tenantOf(t, "shop", "held", nil)
	d := newDebounce(time.Second, time.Minute)
	d.hold(d.pend(held, rotated()), plan.PeerFailed)
	d.hold(d.pend(neighbour, rotated()), plan.PeerFailed)
	slot := tenantOf(t, "shop", "slot", nil)
	d.hold(d.pend(slot, rotated()), plan.Limit)
	d.releaseHeld(workload.Key{Kind: "deployment", Namespace: "shop", Name: "other"}, written)
	for w, want := range map[*workload.Workload]plan.Reason{held: plan.PeerFailed, neighbour: plan.None, slot: plan.Limit} {
		if got := d.byKey[w.Key()].held; got != want {
			t.Errorf("%s in %s is held for %q, want %q", w.ID, w.ID.Namespace, got, want)
		}
	}
}
