package actuate

import (
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
	b.acked = 2
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
	last := b.last
	b.last = nil
	wait := func(d time.Duration) {
		for range d / time.Minute {
			b.now = b.now.Add(time.Minute)
			b.turn()
		}
	}
	wait(24 * time.Hour)
	b.wantRecords(0, "there is no event")
	b.last = last
	wait(12 * time.Minute)
	b.wantRecords(1, "there is one")
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
	for i := range 10 * 60 {
		b.set("web", func(d *appsv1.Deployment) {
			d.Annotations = rollOn("auto, configmap/app-" + strconv.Itoa(i))
		})
		w, _ := workload.Read(deployments, b.get("web"), workload.Reading{})
		b.recorder.index.observe(w, true)
		b.review(t.Context())
		b.turn()
		b.now = b.now.Add(time.Second)
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
