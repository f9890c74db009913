package actuate

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// recordBed is a loop that does not run, Deployments, and what the stream has for db.
type recordBed struct {
	*cluster
	*loop
	now     time.Time
	last    *events.Delivery
	lag     events.Lag
	outcome events.Outcome
	// failure is why the outcome cannot be read.
	failure error
}

func newRecordBed(t *testing.T, mutate func(*Options), deployments ...*appsv1.Deployment) *recordBed {
	t.Helper()
	b := &recordBed{
		cluster: newStreamless(t, deployments...), now: written, lag: events.Lag{Delivered: 1, AckFloor: 1},
		last: &events.Delivery{Change: changeOf(nil), Seq: 1, Deliveries: 1},
	}
	options := b.options()
	options.Now = func() time.Time { return b.now }
	if mutate != nil {
		mutate(&options)
	}
	b.loop = loopOf(t, options)
	b.recorder.reads = recordReads{
		last: func(context.Context, events.Source) (*events.Delivery, error) {
			if b.last == nil {
				return nil, events.ErrNotFound
			}
			return b.last, nil
		},
		lag:     func(context.Context) (events.Lag, error) { return b.lag, nil },
		outcome: func(context.Context, events.Workload) (events.Outcome, error) { return b.outcome, b.failure },
		log:     options.Logger,
	}
	for _, deployment := range deployments {
		b.observe(deployment.Name)
	}
	return b
}

// unacked says that an event is delivered and in flight.
var unacked = events.Lag{Delivered: 1, AckPending: 1}

// observe shows the index a Deployment.
func (b *recordBed) observe(name string) {
	b.Helper()
	w, ok := workload.Read(deployments, b.get(name), workload.Reading{})
	if !ok {
		b.Fatal("no workload")
	}
	b.recorder.index.Listed(w, "")
	b.review(b.Context())
}

// turn lets the recorder act, and then the other parts.
func (b *recordBed) turn() {
	b.recorder.collect()
	b.recorder.advance(b.Context())
	if b.recorder.busy {
		b.recorder.answered(b.Context(), <-b.recorder.answers)
	}
	b.finish()
}

// finish takes the result of the patch that is under way, if any.
func (b *recordBed) finish() {
	if len(b.patcher.underWay) > 0 {
		b.completion.finish(b.Context(), <-b.patcher.results)
	}
	b.review(b.Context())
}

func (b *recordBed) wantRecords(want int, why string) {
	b.Helper()
	if got := len(b.records()); got != want {
		b.Fatalf("%d records are written, want %d: %s", got, want, why)
	}
	if rolled := b.patches(); len(rolled) > 0 {
		b.Errorf("%v are rolled", rolled)
	}
	if b.outbox.unpublished > 0 {
		b.Errorf("%d outcomes are reported", b.outbox.unpublished)
	}
}

func TestAWorkloadWithoutARecordGetsOne(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")), deploymentOf("silent", "db", map[string]string{"team": "a"}))
	b.turn()
	b.wantRecords(1, "web has none")
	deployment := b.get("web")
	want := workload.RolledFor{Fingerprint: fp("b"), Version: "100", UID: "uid", Scope: "*"}
	if record := recordOf(deployment.Annotations[annotationRolled])["secret/db"]; record != want {
		t.Errorf("got %q, want %q", record, want)
	}
	if len(deployment.Spec.Template.Annotations) != 0 || deployment.Generation != 0 {
		t.Errorf("the pod template is written: %v", deployment.Spec.Template.Annotations)
	}
	b.now = b.now.Add(time.Hour)
	b.turn()
	b.wantRecords(1, "it has one")
}

func TestWhatIsNotSettledIsRecordedLater(t *testing.T) {
	denied := events.Outcome{
		Verb: events.VerbFailed, Reason: events.ReasonPatchDenied, Sources: []events.OutcomeSource{{Source: "secret/db", Event: "uid/100"}},
	}
	tests := []struct {
		name    string
		prepare func(*recordBed)
		settle  func(*recordBed)
	}{
		{"an event that is not decided", func(b *recordBed) { b.lag = unacked }, func(b *recordBed) { b.lag.AckFloor = 1 }},
		{
			"a change that the API server refused to roll for",
			func(b *recordBed) { b.outcome = denied }, func(b *recordBed) { b.outcome = events.Outcome{} },
		},
		{
			"a change whose rolls someone took back",
			func(b *recordBed) { b.outcome = denied; b.outcome.Reason = reasonReverted }, func(b *recordBed) { b.outcome = events.Outcome{} },
		},
		{
			"a workload with a pending change",
			func(b *recordBed) { b.debounce.pend(b.recorder.index.All()[0], changeOf(nil)) },
			func(b *recordBed) { b.debounce.drop(b.debounce.byKey[b.recorder.index.All()[0].Key()]) },
		},
		{
			"a workload that is written meanwhile",
			func(b *recordBed) {
				b.set("web", func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} })
			},
			func(b *recordBed) { b.observe("web") },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")))
			test.prepare(b)
			b.turn()
			b.wantRecords(0, "it is not settled")
			test.settle(b)
			b.turn()
			b.wantRecords(0, "it is too early to try again")
			b.now = b.now.Add(time.Minute)
			b.turn()
			b.wantRecords(1, "it is settled")
		})
	}
}

// Another workload may wait for its turn with the same or an earlier event, which is not acked until then.
func TestAnEventThatIsTakenIsDecidedForAWorkloadWithoutPendingChanges(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")))
	b.lag = unacked
	b.last.Change = changeOf(func(c *events.Change) { c.Verb, c.ChangedAt, c.Previous, c.Changed = events.VerbObserved, "", "", nil })
	b.turn()
	b.wantRecords(0, "the event is neither acked nor taken")
	b.intake.take(t.Context(), b.last)
	b.now = b.now.Add(time.Minute)
	b.turn()
	b.wantRecords(1, "the event is taken, and needs nothing")
}

func TestNothingIsRecordedOfARefusedChangeWhenTheWorkloadHasAnotherOutcome(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")))
	w := b.recorder.index.All()[0]
	p := pendingOf(w, changeOf(nil))
	r, err := newTask(deployments, w, decisionsOf(w, p), p)
	if err != nil {
		t.Fatal(err)
	}
	r.span = trace.SpanFromContext(t.Context())
	b.completion.giveUp(t.Context(), r, denial())
	other := []events.OutcomeSource{{Source: "secret/other"}}
	b.outcome = events.Outcome{Verb: events.VerbSkipped, Reason: plan.KeysNotConsumed.String(), Sources: other}
	b.turn()
	b.now = b.now.Add(time.Hour)
	b.turn()
	if got := b.records(); len(got) > 0 {
		t.Errorf("%v have a record of a change that their pods do not have", got)
	}
	b.recorder.index.Forget(w.Key(), w.ID.UID, "")
	b.review(t.Context())
	if len(b.recorder.denied) > 0 {
		t.Errorf("remembered of a workload that is gone: %v", b.recorder.denied)
	}
}

func TestADryRunRecordsNothing(t *testing.T) {
	b := newRecordBed(t, func(o *Options) { o.DryRun = true }, deploymentOf("web", "db", rollOn("auto")))
	b.turn()
	b.wantRecords(0, "it is a dry run")
}

func TestARecordThatIsRemovedAgainAndAgainIsWrittenEverMoreSeldom(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")))
	remove := func() {
		if b.get("web").Annotations[annotationRolled] != "" { // A write takes milliseconds.
			b.set("web", func(d *appsv1.Deployment) { delete(d.Annotations, annotationRolled) })
		}
		b.observe("web")
	}
	b.turn()
	b.wantRecords(1, "it has none")
	var inHours []int
	for range 3 {
		before := len(b.records())
		for range 24 * 12 {
			b.now = b.now.Add(5 * time.Minute)
			b.turn()
			remove()
		}
		inHours = append(inHours, len(b.records())-before)
	}
	if inHours[0] < 3 || inHours[0] > 15 || inHours[2] > 5 {
		t.Errorf("removed every five minutes, it is written %v times a day", inHours)
	}
	// It may opt in to more sources at any time.
	b.turn()
	wrote := len(b.records())
	b.set("web", func(d *appsv1.Deployment) {
		delete(d.Annotations, annotationRolled)
		d.Annotations[workload.AnnotationRollOn] = "auto, configmap/app"
	})
	w, _ := workload.Read(deployments, b.get("web"), workload.Reading{})
	b.recorder.index.Written(w)
	b.review(t.Context())
	b.turn()
	if got := len(b.records()); got != wrote+1 {
		t.Errorf("%d records are written after it was annotated anew, want %d", got, wrote+1)
	}
}

func TestRecordsArePacedAndTakeNoPlaceOfRolls(t *testing.T) {
	b := newRecordBed(t, func(o *Options) { o.PatchWorkers = 1 },
		deploymentOf("one", "db", rollOn("auto")), deploymentOf("two", "db", rollOn("auto")))
	b.recorder.advance(t.Context())
	b.recorder.answered(t.Context(), <-b.recorder.answers)
	if len(b.patcher.underWay) != 1 || b.patcher.full() || !b.patcher.idle() {
		t.Errorf("%d patches are under way; full %t, idle %t", len(b.patcher.underWay), b.patcher.full(), b.patcher.idle())
	}
	for key := range b.patcher.underWay {
		if b.patcher.replaces(key) {
			t.Errorf("the record of %s is to replace pods", key.Name)
		}
	}
	b.finish()
	b.turn()
	b.wantRecords(1, "the next one has to wait")
	if due, ok := b.recorder.nextDue(); !ok || due.Sub(b.now) != recordPause {
		t.Errorf("the next one is due at %s (%t)", due, ok)
	}
	b.now = b.now.Add(recordPause)
	b.turn()
	b.wantRecords(2, "it has waited")
	if b.patcher.background != 0 || b.patcher.full() {
		t.Errorf("%d patches are still counted", b.patcher.background)
	}
}

// An actuator that restarts finds every event acked.
func TestAnActuatorThatStartsWritesTheRecordsThatAreMissing(t *testing.T) {
	c := newCluster(t, deploymentOf("web", "db", rollOn("auto")))
	_, stop := c.start(c.options())
	change := changeOf(func(change *events.Change) {
		change.Verb, change.ChangedAt, change.Previous, change.Changed = events.VerbObserved, "", "", nil
		change.ResourceVersion, change.Time = c.next(), time.Now()
		change.Keys["password"] = events.Key{Fingerprint: fp("2")}
	})
	mustPublish(t, c.bus, change, 0)
	c.decided()
	stop()
	_, stop = c.start(c.options())
	defer stop()
	c.eventually("it has a record", func() bool {
		return strings.Contains(c.get("web").Annotations[annotationRolled], fp("b")+"@0/uid")
	})
	if rolled := c.patches(); len(rolled) > 0 {
		t.Errorf("%v are rolled", rolled)
	}
	if last := c.last("web"); !strings.Contains(last, events.ErrNotFound.Error()) {
		t.Errorf("told of web: %s", last)
	}
}
