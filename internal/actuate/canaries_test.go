package actuate

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestOneWorkloadGoesFirstAfterAnotherWasRepairedByHand(t *testing.T) {
	rolled := map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"}}
	progress := func(version, revision string, state workload.State) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.Version, w.Revision, w.Rolled, w.Progress = version, revision, rolled, workload.Progress{State: state, Pods: 1}
		}
	}
	tests := []struct {
		name string
		// repair is what happens to the one that failed, and canary to the one that goes first.
		repair func(*workload.Workload)
		canary func(*loop, *workload.Workload)
		// want is why the second one waits, and third why the third one waits once the second was started.
		want, third plan.Reason
	}{
		{"it is in progress", progress("70", "", workload.Complete), func(l *loop, w *workload.Workload) { l.debounce.pend(w, changeOf(nil)) }, plan.CanaryFirst, plan.CanaryFirst},
		{"it has succeeded", progress("70", "", workload.Complete), func(l *loop, w *workload.Workload) {
			after := *w
			progress("80", "r2", workload.Complete)(&after)
			l.intake.index.Written(&after)
		}, plan.None, plan.None},
		{"it has failed", progress("70", "", workload.Complete), func(l *loop, w *workload.Workload) {
			after := *w
			progress("80", "r2", workload.Failed)(&after)
			l.intake.index.Written(&after)
			l.rollouts.peers.add(w.Key())
		}, plan.PeerFailed, plan.PeerFailed},
		{"it is gone", progress("70", "", workload.Complete), func(l *loop, w *workload.Workload) { l.intake.index.Forget(w.Key(), w.ID.UID, "") }, plan.None, plan.CanaryFirst},
		{
			"there is none: the one that failed is complete after all, so the content is good", progress("70", "r1", workload.Complete),
			func(l *loop, w *workload.Workload) { l.debounce.pend(w, changeOf(nil)) }, plan.None, plan.None,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			failed := workloadOf(t, "auto", wholeDB, named("failed", progress("60", "r1", workload.Failed)))
			var held []*workload.Workload
			for _, name := range []string{"first", "second", "third"} {
				held = append(held, workloadOf(t, "auto", wholeDB, named(name, nil)))
			}
			l := loopOf(t, testOptions(), failed, held[0], held[1], held[2])
			l.rollouts.peers.add(failed.Key())
			obstacle := func(w *workload.Workload) plan.Reason {
				return l.dispatcher.admission.obstacle(w, decisionsOf(w, pendingOf(w, changeOf(nil))), written).reason
			}
			start := func(w *workload.Workload) {
				l.dispatcher.admission.canaries.start(w, decisionsOf(w, pendingOf(w, changeOf(nil))))
			}
			if got := obstacle(held[0]); got != plan.PeerFailed {
				t.Fatalf("before the repair: got %q", got)
			}
			repaired := workloadOf(t, "auto", wholeDB, named("failed", test.repair))
			l.intake.index.Written(repaired)
			l.rollouts.review(t.Context(), repaired.Key())
			if got := obstacle(held[0]); got != plan.None {
				t.Fatalf("after the repair the first one waits: %s", got)
			}
			start(held[0])
			test.canary(l, held[0])
			if got := obstacle(held[1]); got != test.want {
				t.Errorf("the second one: got %q, want %q", got, test.want)
			}
			start(held[1])
			l.debounce.pend(held[1], changeOf(nil))
			if got := obstacle(held[2]); got != test.third {
				t.Errorf("the third one: got %q, want %q", got, test.third)
			}
		})
	}
}

// A workload of a lower wave that pauses holds up no other, so one of a higher wave may go first. If the patch of that one fails after the pause,
// each would wait for the other.
func TestACanaryThatIsNotPatchedLetsALowerWaveGoFirst(t *testing.T) {
	wave := func(number int) func(*workload.Workload) {
		return func(w *workload.Workload) { w.Wave = number }
	}
	higher, lower := workloadOf(t, "auto", wholeDB, named("higher", wave(1))), workloadOf(t, "auto", wholeDB, named("lower", wave(0)))
	other := workloadOf(t, "auto", wholeDB, named("other", wave(1)))
	l := loopOf(t, testOptions(), higher, lower, other)
	change := pendingOf(higher, changeOf(nil))
	l.rollouts.canaries.require("shop", map[string]workload.RolledFor{"secret/db": decisionsOf(higher, change)[0].Record})
	obstacle := func(w *workload.Workload) plan.Reason {
		l.dispatcher.admission.forget()
		return l.dispatcher.admission.obstacle(w, decisionsOf(w, pendingOf(w, changeOf(nil))), written).reason
	}
	start := func(w *workload.Workload) {
		l.dispatcher.admission.begin(w, decisionsOf(w, pendingOf(w, changeOf(nil))))
		l.patcher.underWay[w.Key()] = &task{workload: w, pending: pendingOf(w, changeOf(nil))}
	}
	start(higher)
	l.debounce.pend(lower, changeOf(nil))
	if got := obstacle(lower); got != plan.CanaryFirst {
		t.Fatalf("while the canary is being patched, the lower wave: got %q, want %q", got, plan.CanaryFirst)
	}
	delete(l.patcher.underWay, higher.Key())
	l.debounce.pend(higher, changeOf(nil))
	if got := obstacle(higher); got != plan.LowerWave {
		t.Fatalf("after its patch has failed, the canary: got %q, want %q", got, plan.LowerWave)
	}
	if got := obstacle(other); got == plan.None {
		t.Error("one of the wave of the canary goes before it")
	}
	if got := obstacle(lower); got != plan.None {
		t.Fatalf("both wait: the lower wave: %q", got)
	}
	l.debounce.drop(l.debounce.byKey[lower.Key()])
	start(lower)
	if got := obstacle(higher); got != plan.CanaryFirst {
		t.Errorf("while the lower wave is being patched, the higher one: got %q, want %q", got, plan.CanaryFirst)
	}
	delete(l.patcher.underWay, lower.Key())
	after := *lower
	after.Version, after.Rolled = "90", map[string]workload.RolledFor{"secret/db": decisionsOf(higher, change)[0].Record}
	l.intake.index.Written(&after)
	if got := obstacle(higher); got != plan.None {
		t.Errorf("when the lower wave is finished, the higher one waits: %q", got)
	}
}

// Two workloads go first, each with its own change. Both patches fail, and before they are sent again, each also has the change of the other.
func TestOfTwoCanariesThatWaitForEachOtherOneGoes(t *testing.T) {
	both := func(w *workload.Workload) {
		w.Refs = []workload.Reference{wholeDB, {Kind: events.KindConfigMap, Name: "app"}}
	}
	first, second := workloadOf(t, "auto", wholeDB, named("first", both)), workloadOf(t, "auto", wholeDB, named("second", both))
	third := workloadOf(t, "auto", wholeDB, named("third", both))
	changes := []events.Change{changeOf(nil), changeOf(func(c *events.Change) { c.Source = app })}
	l := loopOf(t, testOptions(), first, second, third)
	for i, w := range []*workload.Workload{first, second} {
		p := pendingOf(w, changes[i])
		decisions := decisionsOf(w, p)
		source := changes[i].Source.String()
		l.rollouts.canaries.require("shop", map[string]workload.RolledFor{source: decisions[0].Record})
		l.dispatcher.admission.begin(w, decisions)
	}
	for _, w := range []*workload.Workload{first, second, third} {
		for _, change := range changes {
			l.debounce.pend(w, change)
		}
	}
	obstacle := func(w *workload.Workload) plan.Reason {
		l.dispatcher.admission.forget()
		return l.dispatcher.admission.obstacle(w, decisionsOf(w, pendingOf(w, changes...)), written).reason
	}
	var free []*workload.Workload
	for _, w := range []*workload.Workload{third, second, first} {
		if obstacle(w) == plan.None {
			free = append(free, w)
		}
	}
	if len(free) != 1 || free[0] == third {
		t.Fatalf("%d of them may go, want one of the two", len(free))
	}
	l.debounce.drop(l.debounce.byKey[free[0].Key()])
	l.dispatcher.admission.begin(free[0], decisionsOf(free[0], pendingOf(free[0], changes...)))
	l.patcher.underWay[free[0].Key()] = &task{workload: free[0], pending: pendingOf(free[0], changes...)}
	for _, w := range []*workload.Workload{first, second, third} {
		if got := obstacle(w); w != free[0] && got != plan.CanaryFirst {
			t.Errorf("%s waits for %q while that one is patched, want %q", w.ID, got, plan.CanaryFirst)
		}
	}
}

// The canary of a change also has a change that a workload failed for. The change of the canary would repair that workload.
func TestAWorkloadThatFailedIsRepairedBeforeThoseThatWaitForIt(t *testing.T) {
	appChange := changeOf(func(c *events.Change) { c.Source, c.ResourceVersion, c.ChangedAt = app, "200", "200" })
	both := func(mutate func(*workload.Workload)) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.Refs = []workload.Reference{wholeDB, {Kind: events.KindConfigMap, Name: "app"}}
			mutate(w)
		}
	}
	tests := []struct {
		name string
		// wave is that of the workload that failed.
		wave int
		// canary makes the other one go first with the repair.
		canary bool
	}{
		{"although one of them is the canary of the repair", 0, true},
		{"although one of them is of a lower wave", 1, false},
		{"although one of them is both", 1, true},
	}
	for _, tt := range tests {
		for _, order := range [][]string{{"failed", "other"}, {"other", "failed"}} {
			t.Run(tt.name+", and "+order[0]+" is decided first", func(t *testing.T) {
				failed := workloadOf(t, "auto", wholeDB, named("failed", both(func(w *workload.Workload) {
					w.Revision, w.Wave = "r1", tt.wave
					w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"}}
				})))
				other := workloadOf(t, "auto", wholeDB, named("other", both(func(*workload.Workload) {})))
				third := workloadOf(t, "auto", wholeDB, named("third", both(func(w *workload.Workload) { w.Wave = 1 })))
				l := loopOf(t, testOptions(), failed, other, third)
				defer func() {
					for range l.patcher.drain() {
					}
				}()
				l.rollouts.peers.add(failed.Key())
				if tt.canary {
					decisions := decisionsOf(other, pendingOf(other, appChange))
					l.rollouts.canaries.require("shop", map[string]workload.RolledFor{"configmap/app": decisions[0].Record})
					l.dispatcher.admission.canaries.start(other, decisions)
				}
				l.debounce.pend(other, changeOf(nil))
				for _, w := range []*workload.Workload{failed, other, third} {
					l.debounce.pend(w, appChange)
				}
				for i, name := range append(order, "third") {
					p := l.debounce.byKey[workload.Key{Kind: "deployment", Namespace: "shop", Name: name}]
					p.first = written.Add(time.Duration(i) * time.Millisecond)
					l.debounce.schedule(p, written)
				}
				l.dispatcher.dispatch(t.Context())
				if !l.patcher.busy(failed.Key()) {
					t.Errorf("the one that failed waits: %s", l.debounce.byKey[failed.Key()].held)
				}
				if l.patcher.busy(other.Key()) {
					t.Error("the other one does not wait for it")
				}
				if l.patcher.busy(third.Key()) {
					t.Error("the third one does not wait")
				}
			})
		}
	}
}

func TestWhatHoldsAWorkloadIsNamed(t *testing.T) {
	peer := workloadOf(t, "auto", wholeDB, named("peer", nil))
	for _, tt := range []struct {
		obstacle
		want string
	}{
		{obstacle{reason: plan.LowerWave, peer: peer}, plan.LowerWave.Sentence() + ": deployment/peer"},
		{obstacle{reason: plan.Limit}, plan.Limit.Sentence()},
	} {
		if got := tt.sentence(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// The patch of the one that goes first after a repair fails for as long as a webhook is down.
func TestACanaryThatCannotBePatchedLetsAnotherOfItsWaveGoFirst(t *testing.T) {
	b := newBakeBed(t,
		deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")), deploymentOf("c", "db", inWave("0")),
		deploymentOf("later", "db", inWave("1")))
	b.options.Canary = false
	b.lead()
	var tried []string
	b.client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		patch, _ := action.(k8stesting.PatchAction)
		tried = append(tried, patch.GetName())
		return patch.GetName() == tried[0], nil, errors.New("webhook: internal error")
	})
	b.rollouts.canaries.require("shop", map[string]workload.RolledFor{"secret/db": {Version: "200", UID: "uid"}})
	b.change("200")
	if len(tried) != 1 {
		t.Fatalf("at first %v are patched, want one", tried)
	}
	b.pass(time.Second / 2) // before it is tried again
	if len(tried) != 2 || len(b.patches()) != 1 {
		t.Fatalf("when its patch has failed: patched are %v, and rolled %v; want that another one is rolled", tried, b.patches())
	}
	canary := b.patches()[0]
	b.pass(time.Minute)
	b.pass(time.Minute)
	if got := b.patches(); len(got) != 1 || len(tried) != 2 {
		t.Errorf("while %s is rolled out: patched are %v, and rolled %v; want no other", canary, tried, got)
	}
	b.ready(canary)
	if got := b.patches(); len(got) != 2 || slices.Contains(got, "later") || len(tried) != 4 {
		t.Errorf("when %s is complete: patched are %v, and rolled %v; want that the two others of the wave are patched", canary, tried, got)
	}
}

// Two workloads go first with one change each, and also have the change of the other.
func TestOfCanariesThatCannotBePatchedAndTheirPeersOneGoes(t *testing.T) {
	both := func(w *workload.Workload) {
		w.Refs = []workload.Reference{wholeDB, {Kind: events.KindConfigMap, Name: "app"}}
	}
	changes := []events.Change{changeOf(nil), changeOf(func(c *events.Change) { c.Source = app })}
	for _, order := range [][]string{{"first", "second", "third"}, {"third", "second", "first"}, {"second", "third", "first"}} {
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			workloads := make(map[string]*workload.Workload)
			for _, name := range order {
				workloads[name] = workloadOf(t, "auto", wholeDB, named(name, both))
			}
			l := loopOf(t, testOptions(), slices.Collect(maps.Values(workloads))...)
			for i, name := range []string{"first", "second"} {
				w := workloads[name]
				decisions := decisionsOf(w, pendingOf(w, changes[i]))
				l.rollouts.canaries.require("shop", map[string]workload.RolledFor{changes[i].Source.String(): decisions[0].Record})
				l.dispatcher.admission.begin(w, decisions)
			}
			for i, name := range order {
				w := workloads[name]
				for _, change := range changes {
					l.debounce.pend(w, change)
				}
				p := l.debounce.byKey[w.Key()]
				if name != "third" {
					p.attempts = 1
				}
				l.debounce.schedule(p, written.Add(time.Duration(i-len(order))*time.Millisecond))
			}
			l.dispatcher.dispatch(t.Context())
			var going []string
			for name, w := range workloads {
				if l.patcher.busy(w.Key()) {
					going = append(going, name)
				}
			}
			if len(going) != 1 {
				t.Errorf("%v go, want one", going)
			}
			for range l.patcher.drain() {
			}
		})
	}
}
