package sources

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

// unmeasured are metrics that nobody reads.
func unmeasured(tb testing.TB, known *ledger) *metrics {
	tb.Helper()
	none := func() int { return 0 }
	m, err := newMetrics(metricnoop.NewMeterProvider().Meter(""), none, none, known, func(events.Source) bool { return true })
	testkit.Must(tb, err)
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
	testkit.Must(t, err)
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
	got := testkit.Measured(t, reader)
	testkit.WantEqual(t, "difference", want, got)
	labels := map[string]map[string]bool{}
	for series := range got {
		name, values, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		if labels[name] == nil {
			labels[name] = map[string]bool{}
		}
		for pair := range strings.SplitSeq(values, ",") {
			if label, _, ok := strings.Cut(pair, "="); ok {
				labels[name][label] = true
			}
		}
	}
	defined := map[string]map[string]bool{}
	for _, instrument := range Instruments() {
		defined[instrument.Name] = map[string]bool{}
		for _, label := range instrument.Labels {
			defined[instrument.Name][label] = true
		}
	}
	testkit.WantEqual(t, "labels", defined, labels)
}
