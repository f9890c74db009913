package actuate

import (
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAReplayIsTimedFromItsRequest(t *testing.T) {
	c := newStreamless(t, deploymentOf("web", "db", rollOn("auto")))
	now, options, reader := time.Now().Truncate(time.Second), c.options(), sdkmetric.NewManualReader()
	options.Now, options.Meter = func() time.Time { return now }, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	deployment, _ := a.index.Read(deployments, c.get("web"))
	a.index.Listed(deployment, "")
	l := newLoop(a.surroundings, unwritten(a))
	w, version := a.index.All()[0], c.next()
	e := eventOf(changeOf(func(c *events.Change) {
		c.ResourceVersion, c.ChangedAt, c.Fingerprint, c.Time = version, version, fp("1"), now.Add(-20*24*time.Hour)
	}))
	e.delivery.Received, e.delivery.Seq, e.delivery.Replay, e.delivery.Asked, e.open = now, 1, 7, now, 1
	l.intake.consider(t.Context(), e, w, nil)
	now = now.Add(3 * time.Second)
	if age := l.debounce.byKey[w.Key()].age(now); age != 3*time.Second {
		t.Errorf("the oldest change has waited for %s, want three seconds", age)
	}
	l.dispatcher.dispatch(t.Context())
	l.completion.finish(t.Context(), <-l.patcher.results)
	c.wantPatched("web")
	took, ok := collect(t, reader)["keyturn.change.patch.duration"].(metricdata.Histogram[float64])
	if !ok || len(took.DataPoints) != 1 || took.DataPoints[0].Sum != 3 {
		t.Errorf("got %+v, want one patch that was made in three seconds", took.DataPoints)
	}
	if changed := l.rollouts.following.rollouts[w.Key()].changed; len(changed) != 1 || now.Sub(changed[0]) != 3*time.Second {
		t.Errorf("its pods are taken for late since %v", changed)
	}
}
