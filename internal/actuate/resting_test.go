package actuate

import (
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

// TestAHoldForDaysIsNotedAsLongAndNotAsLate has a source change each day while the workload is on hold.
func TestAHoldForDaysIsNotedAsLongAndNotAsLate(t *testing.T) {
	const days = 9
	c := newCluster(t, deploymentOf("web", "db", onHold()))
	now, options, reader := time.Now().Truncate(time.Second), c.options(), sdkmetric.NewManualReader()
	options.Now, options.Meter = func() time.Time { return now }, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	observe := func(deployment *appsv1.Deployment) {
		w, _ := a.index.read(deployments, deployment)
		a.index.observe(w, false)
	}
	observe(c.get("web"))
	l := newLoop(a.surroundings, unwritten(a))
	w := a.index.all()[0]
	for day := range days {
		version := c.next()
		e := eventOf(changeOf(func(c *events.Change) {
			c.ResourceVersion, c.ChangedAt, c.Fingerprint, c.Time = version, version, fp(string("123456789"[day])), now
		}))
		e.delivery.Received, e.delivery.Seq, e.open = now, uint64(day+1), 1
		l.intake.consider(t.Context(), e, w, nil)
		l.dispatcher.dispatch(t.Context())
		now = now.Add(24 * time.Hour)
	}
	l.takeSnapshot()
	if got := l.snapshots.Load().oldest[plan.OnHold]; got != days*24*time.Hour {
		t.Errorf("it has waited for %s, want %d days", got, days)
	}
	c.annotated("web", map[string]string{events.AnnotationHold: ""})
	observe(c.get("web"))
	l.gathering.wake(w.Key(), now)
	l.dispatcher.dispatch(t.Context())
	now = now.Add(3 * time.Second)
	l.completion.finish(t.Context(), <-l.patcher.results)
	c.wantPatched("web")
	late, ok := collect(t, reader)["keyturn.change.patch.duration"].(metricdata.Histogram[float64])
	if !ok || len(late.DataPoints) != 1 || late.DataPoints[0].Sum != 3 {
		t.Errorf("got %+v, want one patch that was made in three seconds", late.DataPoints)
	}
	if changed := l.rollouts.following.rollouts[w.Key()].changed; len(changed) != 1 || now.Sub(changed[0]) != 3*time.Second {
		t.Errorf("its pods are taken for late since %v", changed)
	}
}
