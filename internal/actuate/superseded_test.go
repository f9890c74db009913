package actuate

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// heldBed is a loop whose one workload with changes waits for a slot.
type heldBed struct {
	*testing.T
	*loop
	now  time.Time
	held *workload.Workload
	// done has the error of each delivery that is finished.
	done map[*events.Delivery]error
	seq  uint64
}

func newHeldBed(t *testing.T, options Options) *heldBed {
	t.Helper()
	b := &heldBed{T: t, now: written, done: make(map[*events.Delivery]error)}
	options.MaxRollouts, options.Now = 1, func() time.Time { return b.now }
	pods := func(w *workload.Workload) { w.Progress.Pods = 1 }
	b.held = workloadOf(t, "auto", wholeDB, pods)
	busy := workloadOf(t, "auto", workload.Reference{Kind: events.KindConfigMap, Name: "app"}, named("busy", pods))
	b.loop = loopOf(t, options, b.held, busy)
	b.rollouts.following.follow(busy.Key(), &rollout{})
	b.inFlight.done = func(d *events.Delivery, _ context.Context, err error) { b.done[d] = err }
	return b
}

// deliver makes the loop take an event with other content, and act on what is due.
func (b *heldBed) deliver(change events.Change) *events.Delivery {
	d := b.publish(change)
	b.take(d)
	return d
}

// publish returns an event as the stream stores it.
func (b *heldBed) publish(change events.Change) *events.Delivery {
	b.seq++
	return &events.Delivery{Change: change, Seq: b.seq, StoredAt: b.now.Add(time.Duration(b.seq) * time.Millisecond), Deliveries: 1, Received: b.now}
}

func (b *heldBed) take(d *events.Delivery) {
	b.intake.take(b.Context(), d)
	b.now = b.now.Add(2 * time.Second)
	b.dispatcher.dispatch(b.Context())
}

// pending returns the pending changes of the held workload.
func (b *heldBed) pending() *pending { return b.debounce.byKey[b.held.Key()] }

// patch makes a patch of the held workload be under way.
func (b *heldBed) patch() *task {
	b.Helper()
	p := b.pending()
	b.debounce.releaseAll(b.now)
	if b.debounce.pop(b.now, inAny) != p {
		b.Fatal("it is not released")
	}
	b.debounce.drop(p)
	r, err := newTask(deployments, b.held, decisionsOf(b.held, p), p)
	if err != nil {
		b.Fatal(err)
	}
	r.span = trace.SpanFromContext(b.Context())
	b.patcher.underWay[b.held.Key()] = r
	return r
}

// version returns a change of db at a resourceVersion.
func version(number int, letter string) events.Change {
	return changeOf(func(c *events.Change) {
		c.ResourceVersion = strconv.Itoa(number)
		c.ChangedAt, c.Fingerprint = c.ResourceVersion, fp(letter)
		c.Keys["password"] = events.Key{Fingerprint: fp(letter), ChangedAt: c.ResourceVersion}
	})
}

// The stream has only the last event of a source, so nothing would limit how many a waiting workload keeps.
func TestALaterEventTakesThePlaceOfTheOneBefore(t *testing.T) {
	options, recorder := traced()
	b := newHeldBed(t, options)
	first := b.deliver(version(100, "b"))
	if b.pending() == nil || b.pending().held != plan.Limit {
		t.Fatalf("it does not wait for a slot: %+v", b.pending())
	}
	var last *events.Delivery
	for i := range 200 {
		last = b.deliver(version(101+i, "c"))
	}
	if len(b.inFlight.open) != 1 {
		t.Errorf("%d events are in flight, want the last", len(b.inFlight.open))
	}
	if err, done := b.done[first]; !done || err != nil || len(b.done) != 200 {
		t.Errorf("%d events are finished, the first: %t (%v), want all but the last acked", len(b.done), done, err)
	}
	if _, done := b.done[last]; done {
		t.Error("the last event is acked, and its workload waits")
	}
	if c := b.pending().changes[db]; c.change.ResourceVersion != "300" {
		t.Errorf("the change at %s waits, want the last", c.change.ResourceVersion)
	}
	startPlan(t.Context(), options.Tracer, b.pending(), b.held).End()
	ended := recorder.Ended()
	if got := len(ended[len(ended)-1].Links()); got < 2 || got > 20 {
		t.Errorf("the plan has %d links, want some", got)
	}
}

func TestAWaitBeginsWithTheFirstEventOfASource(t *testing.T) {
	b := newHeldBed(t, testOptions())
	b.held.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "90", UID: "uid"}}
	b.deliver(version(100, "b"))
	b.now = b.now.Add(time.Minute)
	b.deliver(version(110, "a"))
	v := b.dispatcher.decide(b.pending(), b.held)
	if len(v.doing) != 1 || v.doing[0].Reason != plan.ChangedMeanwhile {
		t.Errorf("got %+v, want %s: pods that have started have what came and went", v, plan.ChangedMeanwhile)
	}
}

// An answer to one delivery of an event is an answer to all.
func TestAnEventThatIsDeliveredAgainIsAnsweredOnce(t *testing.T) {
	b := newHeldBed(t, testOptions())
	first := b.deliver(version(100, "b"))
	again := &events.Delivery{Change: first.Change, Seq: first.Seq, Deliveries: 2, Received: b.now}
	b.take(again)
	if err, done := b.done[first]; !done || !errors.Is(err, events.ErrRedelivered) {
		t.Errorf("the first delivery is finished: %t (%v), want it left to the second", done, err)
	}
	if _, done := b.done[again]; done || len(b.inFlight.open) != 1 {
		t.Errorf("the second delivery is finished: %t, and %d are in flight", done, len(b.inFlight.open))
	}
}

// A second nak would redeliver the event to the leader that got it after the first.
func TestAnEventThatIsDeliveredAgainIsGivenBackOnce(t *testing.T) {
	b := newHeldBed(t, testOptions())
	change := version(100, "b")
	first := b.inFlight.deliver(t.Context(), &events.Delivery{Change: change, Seq: 7, Deliveries: 1})
	again := b.inFlight.deliver(t.Context(), &events.Delivery{Change: change, Seq: 7, Deliveries: 2})
	b.inFlight.abandon(t.Context())
	if err := b.done[first.delivery]; !errors.Is(err, events.ErrRedelivered) {
		t.Errorf("the first delivery is finished with %v, want it left to the second", err)
	}
	if err := b.done[again.delivery]; !errors.Is(err, context.Canceled) || len(b.inFlight.delivered) != 0 {
		t.Errorf("the second delivery is finished with %v, want it given back", err)
	}
}

// A new leader of the consumer may redeliver an event that is already superseded, because its copy of the stream is behind.
func TestAnEventThatIsDeliveredAgainTakesNoLaterOnesPlace(t *testing.T) {
	earlierObject := version(300, "b")
	earlierObject.UID = "made-before"
	deletion := version(110, "c")
	deletion.Verb = events.VerbDeleted
	tests := []struct {
		name        string
		late, later events.Change
		clockBack   bool
	}{
		{name: "of the same object", late: version(100, "b"), later: version(110, "c")},
		{name: "of an object that was deleted and made anew", late: earlierObject, later: version(110, "c")},
		{name: "of the object's deletion, which has its last resourceVersion", late: version(110, "c"), later: deletion},
		{name: "of the same object, stored by a server whose clock is behind", late: version(100, "b"), later: version(110, "c"), clockBack: true},
	}
	whileItIs := []struct {
		name    string
		prepare func(*heldBed)
	}{
		{"pending", func(*heldBed) {}},
		{"being patched for", func(b *heldBed) { b.patch() }},
	}
	for _, test := range tests {
		for _, state := range whileItIs {
			t.Run(test.name+" while that is "+state.name, func(t *testing.T) {
				b := newHeldBed(t, testOptions())
				b.dispatcher.policy.Delete, b.intake.policy.Delete = true, true
				b.held.Refs[0].Optional = true
				late := b.publish(test.late)
				if test.clockBack {
					late.StoredAt = late.StoredAt.Add(time.Minute)
				}
				late.Deliveries++
				last := b.deliver(test.later)
				state.prepare(b)
				b.take(late)
				if err, done := b.done[late]; !done || err != nil {
					t.Errorf("the event that came late is finished: %t (%v), want it acked", done, err)
				}
				if _, done := b.done[last]; done || len(b.inFlight.open) != 1 {
					t.Errorf("the last event is finished: %t, and %d are in flight", done, len(b.inFlight.open))
				}
				if p := b.pending(); p != nil && p.changes[db].change.ID() != test.later.ID() {
					t.Errorf("the change %s is pending, want the last", p.changes[db].change.ID())
				}
			})
		}
	}
}

// A delivery of the consumer may come after the last event was read for one workload alone.
func TestAnEventThatIsDeliveredAgainTakesThePlaceOfNoneThatWasReadAgain(t *testing.T) {
	b := newHeldBed(t, testOptions())
	late, later := b.publish(version(300, "b")), b.publish(version(110, "c"))
	late.Change.UID = "made-before"
	b.intake.recall(t.Context(), answer{question{workload: b.held.Key(), source: db}, later})
	b.take(late)
	if got := b.pending().changes[db].change.ID(); got != later.Change.ID() {
		t.Errorf("the change %s is pending, want the last", got)
	}
	if err, done := b.done[late]; !done || err != nil {
		t.Errorf("the event that came late is finished: %t (%v), want it acked", done, err)
	}
}

// Running pods keep the content of a source that is gone. New pods would not start with the content that it had before.
func TestAnEventThatComesAfterADeletionRollsNothing(t *testing.T) {
	b := newHeldBed(t, testOptions())
	late := b.publish(version(110, "c"))
	deletion := version(110, "c")
	deletion.Verb = events.VerbDeleted
	last := b.deliver(deletion)
	if err, done := b.done[last]; !done || err != nil {
		t.Fatalf("the deletion is finished: %t (%v), want it acked", done, err)
	}
	b.take(late)
	if err, done := b.done[late]; !done || err != nil || b.pending() != nil {
		t.Errorf("the event that came late is finished: %t (%v), and pending: %+v", done, err, b.pending())
	}
}

// A stream that was lost begins again at the first sequence.
func TestAnEventOfANewStreamTakesThePlaceOfOneBefore(t *testing.T) {
	for _, uid := range []string{"uid", "made-anew"} {
		b := newHeldBed(t, testOptions())
		b.seq = 1000
		first := b.deliver(version(100, "b"))
		b.seq = 0
		b.now = b.now.Add(time.Minute)
		next := version(110, "c")
		next.UID = uid
		b.deliver(next)
		if err, done := b.done[first]; !done || err != nil || b.pending().changes[db].change.ID() != next.ID() {
			t.Errorf("the event before is finished: %t (%v), and %s is pending", done, err, b.pending().changes[db].change.ID())
		}
	}
}

// If the stream forgot the event, a crash would lose the change for the workload that still waits.
func TestADenialIsLeftToTheLastDeliveryOfItsEvent(t *testing.T) {
	b := newHeldBed(t, testOptions())
	first := b.deliver(version(100, "b"))
	r := b.patch()
	again := &events.Delivery{Change: first.Change, Seq: first.Seq, Deliveries: 2, Received: b.now}
	b.take(again)
	for range kube.MaxDenials {
		r.pending.deny(r.content)
	}
	b.completion.finish(t.Context(), patchResult{task: r, err: denial()})
	if err, done := b.done[first]; !done || !errors.Is(err, events.ErrRedelivered) {
		t.Errorf("the first delivery is finished: %t (%v), want it left to the second", done, err)
	}
	var reject *events.RejectError
	b.concluder.releaseAll(t.Context(), b.pending(), plan.WorkloadGone)
	if err, done := b.done[again]; !done || !errors.As(err, &reject) {
		t.Errorf("the second delivery is finished: %t (%v), want it rejected", done, err)
	}
}

func TestWhatAFailedPatchWasForGivesWayToWhatCameSince(t *testing.T) {
	b := newHeldBed(t, testOptions())
	first := b.deliver(version(100, "b"))
	r := b.patch()
	last := b.deliver(version(110, "c"))
	b.completion.finish(t.Context(), patchResult{task: r, err: errors.New("no answer")})
	if err, done := b.done[first]; !done || err != nil {
		t.Errorf("the first event is finished: %t (%v), want it acked", done, err)
	}
	if _, done := b.done[last]; done || len(b.inFlight.open) != 1 || b.pending().changes[db].change.ResourceVersion != "110" {
		t.Errorf("the last event is finished: %t, and %d are in flight", done, len(b.inFlight.open))
	}
}
