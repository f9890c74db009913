package actuate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// A replica of the stream may answer with an event that is superseded.
func TestAnEventThatThisLeaderKnowsALaterOneOfIsNotRecorded(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")))
	b.lag = events.Lag{Delivered: 2, AckFloor: 2}
	later := changeOf(func(c *events.Change) {
		c.Verb, c.ChangedAt, c.Previous, c.Changed, c.ResourceVersion = events.VerbObserved, "", "", nil, "110"
	})
	b.intake.take(t.Context(), &events.Delivery{Change: later, Seq: 2, Deliveries: 1})
	b.turn()
	b.wantRecords(0, "a later event was taken than the one read")
	b.last = &events.Delivery{Change: later, Seq: 2, Deliveries: 1}
	b.now = b.now.Add(time.Minute)
	b.turn()
	b.wantRecords(1, "the event that was taken is read")
}

func TestAWorkloadWhoseSourceIsCreatedLateGetsARecordSoonAfter(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")))
	last, reads := b.last, 0
	b.last = nil
	read := b.recorder.reads.last
	b.recorder.reads.last = func(ctx context.Context, source events.Source) (*events.Delivery, error) {
		reads++
		return read(ctx, source)
	}
	wait := func(d time.Duration) {
		for range d / time.Minute {
			b.now = b.now.Add(time.Minute)
			b.turn()
		}
	}
	wait(24 * time.Hour)
	b.wantRecords(0, "there is no event")
	if reads < 3 || reads > 15 {
		t.Errorf("a source that perhaps nobody watches is asked for %d times a day", reads)
	}
	b.last = last
	last.Change = changeOf(func(c *events.Change) { c.Verb, c.ChangedAt, c.Previous, c.Changed = events.VerbObserved, "", "", nil })
	b.intake.take(t.Context(), last)
	wait(2 * time.Minute)
	b.wantRecords(1, "there is one")
}

// The read finds no event, and one arrives before the answer is taken.
func TestAnEventThatComesWhileItIsLookedForIsNotWaitedForAgain(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")))
	last := b.last
	last.Change = changeOf(func(c *events.Change) { c.Verb, c.ChangedAt, c.Previous, c.Changed = events.VerbObserved, "", "", nil })
	b.last = nil
	for range 48 {
		b.now = b.now.Add(time.Hour) // Go on until looks are hours apart.
		b.turn()
	}
	// After a look that failed, nobody knows what was missing.
	read := b.recorder.reads.last
	b.recorder.reads.last = func(context.Context, events.Source) (*events.Delivery, error) { return nil, errors.New("no") }
	for range 24 {
		b.now = b.now.Add(time.Hour)
		b.turn()
	}
	b.recorder.reads.last = read
	for !b.recorder.busy {
		b.now = b.now.Add(time.Hour)
		b.recorder.collect()
		b.recorder.advance(t.Context())
	}
	found := <-b.recorder.answers
	b.last = last
	b.intake.take(t.Context(), last)
	b.recorder.answered(t.Context(), found)
	b.wantRecords(0, "it was not found")
	for range 2 {
		b.now = b.now.Add(time.Minute)
		b.turn()
	}
	b.wantRecords(1, "it has come")
}

func TestAnEventOfAnotherSourceIsNoReasonToAskAgain(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto, configmap/app")))
	b.last = nil
	reads := 0
	b.recorder.reads.last = func(_ context.Context, source events.Source) (*events.Delivery, error) {
		reads++
		if b.last == nil || source == app {
			return nil, events.ErrNotFound
		}
		return b.last, nil
	}
	b.turn()
	before := reads
	for i := range 100 {
		b.last = &events.Delivery{Change: changeOf(func(c *events.Change) {
			c.Verb, c.ChangedAt, c.Previous, c.Changed, c.ResourceVersion = events.VerbObserved, "", "", nil, strconv.Itoa(100+i)
		}), Seq: uint64(i), Deliveries: 1}
		b.intake.take(t.Context(), b.last)
		b.now = b.now.Add(recordPause)
		b.turn()
	}
	b.wantRecords(1, "there is an event of db")
	if reads > before+4 {
		t.Errorf("%d more reads, want those of one look, as the first event of a source comes", reads-before)
	}
}

func TestAnOutcomeThatCannotBeReadKeepsNoRecordBack(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")))
	b.failure = &events.RejectError{Reason: events.ReasonMalformed, Err: errors.New("it is of a later version")}
	b.turn()
	b.wantRecords(1, "the outcome says nothing")
	if got := strings.Count(b.logged(), "last outcome not readable"); got != 1 {
		t.Errorf("logged %d times, want once", got)
	}
}

func TestAWorkloadThatIsAnnotatedAgainAndAgainGetsARecordOnceAMinute(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")))
	const every = 5 * time.Second
	for i := range int(10 * time.Minute / every) {
		b.set("web", func(d *appsv1.Deployment) {
			d.Annotations = rollOn("auto, configmap/app-" + strconv.Itoa(i))
		})
		w, _ := workload.Read(deployments, b.get("web"), workload.Reading{})
		b.recorder.index.Written(w)
		b.review(t.Context())
		b.turn()
		b.now = b.now.Add(every)
	}
	if got := len(b.records()); got < 8 || got > 12 {
		t.Errorf("%d records are written in ten minutes, want about one a minute", got)
	}
}

func TestARecordThatIsRefusedIsNoFailedPatch(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	b := newRecordBed(t, func(o *Options) { o.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test") },
		deploymentOf("web", "db", rollOn("auto")))
	b.refuse = denial()
	b.turn()
	b.refuse = nil
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	for _, scope := range collected.ScopeMetrics {
		for _, metric := range scope.Metrics {
			if metric.Name == "keyturn.patch.errors" {
				t.Errorf("counted: %+v", metric.Data)
			}
		}
	}
	b.now = b.now.Add(time.Minute)
	b.turn()
	b.wantRecords(1, "it is tried again")
}
