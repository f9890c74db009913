package sources

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// none is a number of sources.
func none() int { return 0 }

// allOf is for a ledger with no others than the sources that are watched.
func allOf(events.Source) bool { return true }

// unmeasured are metrics that nobody reads.
func unmeasured(tb testing.TB, known *ledger) *metrics {
	tb.Helper()
	m, err := newMetrics(metricnoop.NewMeterProvider().Meter(""), none, none, known, allOf)
	must(tb, err)
	return m
}

func TestWhatTheWatcherMeasuresHasTheLabelsOfItsDefinition(t *testing.T) {
	reader, known := sdkmetric.NewManualReader(), newLedger()
	certificate := func(name string) events.Source { return events.Source{Kind: events.KindCertificate, Name: name} }
	known.set(testSource, lastOf(1, events.VerbChanged))
	known.set(events.Source{Kind: events.KindSecret, Name: "gone"}, lastOf(1, events.VerbDeleted))
	known.set(certificate("good"), lastOf(1, events.VerbIssued))
	known.set(certificate("bad"), lastOf(1, events.VerbFailed))
	known.set(certificate("unreadable"), kinds.UnreadableEvent(7))
	unwatched := certificate("unwatched")
	known.set(unwatched, lastOf(1, events.VerbFailed))
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
	m, err := newMetrics(meter, func() int { return 3 }, func() int { return 2 }, known, func(source events.Source) bool { return source != unwatched })
	must(t, err)
	m.published(t.Context(), events.Change{Source: testSource, Verb: events.VerbChanged})
	m.errors.Add(t.Context(), 1)
	m.lost.Add(t.Context(), 2)
	m.tried(t.Context(), events.KindSecret, nil)
	m.tried(t.Context(), events.KindSecret, fmt.Errorf("publishing: %w", bus.ErrConflict))
	m.tried(t.Context(), events.KindSecret, &events.RejectError{Reason: "malformed", Err: errors.New("no")})
	m.tried(t.Context(), events.KindSecret, errors.New("no answer"))

	const sent = "messaging.client.sent.messages{messaging.destination.template=keyturn.v1.{cluster}.secret.{namespace}.{name}," +
		"messaging.operation.name=publish,messaging.system=nats}"
	failed := func(why string) string { return sent[:30] + "{error.type=" + why + "," + sent[31:] }
	want := map[string]int64{
		"keyturn.watcher.events{kind=secret,verb=changed}": 1,
		"keyturn.watcher.publish.errors{}":                 1,
		"keyturn.watcher.lost{}":                           2,
		sent:                                               1,
		failed("conflict"):                                 1,
		failed("malformed"):                                1,
		failed("_OTHER"):                                   1,
		"keyturn.watcher.queue{}":                          3,
		"keyturn.watcher.throttled{}":                      2,
		"keyturn.watcher.sources{kind=secret}":             1,
		"keyturn.watcher.sources{kind=certificate}":        2,
		"keyturn.watcher.failing{kind=certificate}":        1,
	}
	got, labels := measuredBy(t, reader)
	wantEqual(t, "difference", want, got)
	defined := map[string]map[string]bool{}
	for _, instrument := range Instruments() {
		defined[instrument.Name] = map[string]bool{}
		for _, label := range instrument.Labels {
			defined[instrument.Name][label] = true
		}
	}
	if diff := cmp.Diff(defined, labels); diff != "" {
		t.Errorf("labels (-definition +measured):\n%s", diff)
	}
}

// measuredBy returns the measured values by name and labels, and the labels of each name.
func measuredBy(t *testing.T, reader sdkmetric.Reader) (measured map[string]int64, labels map[string]map[string]bool) {
	t.Helper()
	var collected metricdata.ResourceMetrics
	must(t, reader.Collect(context.WithoutCancel(t.Context()), &collected))
	measured, labels = map[string]int64{}, map[string]map[string]bool{}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			labels[m.Name] = map[string]bool{}
			for _, point := range points {
				for _, label := range point.Attributes.ToSlice() {
					labels[m.Name][string(label.Key)] = true
				}
				measured[m.Name+"{"+point.Attributes.Encoded(attribute.DefaultEncoder())+"}"] = point.Value
			}
		}
	}
	return measured, labels
}
