package telemetry

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// example has an instrument of each type.
type example struct {
	counter   metric.Int64Counter
	up        metric.Int64UpDownCounter
	gauge     metric.Int64ObservableGauge
	histogram metric.Float64Histogram
}

func (e *example) instruments() []Instrument {
	return []Instrument{
		{Counter: &e.counter, Name: "a.things", Unit: "{thing}", Labels: []string{"error.type"}, About: "Things."},
		{UpDown: &e.up, Name: "a.total.by.namespace", About: "More things."},
		{Gauge: &e.gauge, Name: "a.last", Unit: "s", About: "When it was."},
		{Histogram: &e.histogram, Name: "a.duration", Unit: "s", Buckets: []float64{1, 2}, About: "How long."},
	}
}

// The names on the page are computed by this package, and those at /metrics by the exporter.
func TestTheNamesAreThoseOfTheExporter(t *testing.T) {
	registry := prometheus.NewRegistry()
	reader, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutTargetInfo(), promexporter.WithoutScopeInfo(),
		promexporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		t.Fatal(err)
	}
	meter, e := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(""), &example{}
	if err := MakeInstruments(meter, e.instruments()); err != nil {
		t.Fatal(err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(e.gauge, 1)
		return nil
	}, e.gauge)
	if err != nil {
		t.Fatal(err)
	}
	e.counter.Add(t.Context(), 1, metric.WithAttributes(attribute.String("error.type", "x")))
	e.up.Add(t.Context(), 1)
	e.histogram.Record(t.Context(), 1.5)

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, family := range families {
		labels := []string{strings.ToLower(family.GetType().String())}
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		got[family.GetName()] = labels
	}
	want := map[string][]string{}
	for _, i := range e.instruments() {
		name, err := i.Prometheus()
		if err != nil {
			t.Fatal(err)
		}
		labels, err := i.PrometheusLabels()
		if err != nil {
			t.Fatal(err)
		}
		want[name] = append([]string{i.prometheusType()}, labels...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-definition +exporter):\n%s", diff)
	}
}

func TestReferenceIsATable(t *testing.T) {
	var doc bytes.Buffer
	if err := Reference(&doc, "Title", "Text.", new(example).instruments()[:2]); err != nil {
		t.Fatal(err)
	}
	const want = `
## Title

Text.

| OpenTelemetry | Prometheus | Type | Unit | Labels | Meaning |
| --- | --- | --- | --- | --- | --- |
| ` + "`a.things` | `a_things_total` | counter | {thing} | `error_type`" + ` | Things. |
| ` + "`a.total.by.namespace` | `a_total_by_namespace`" + ` | gauge |  |  | More things. |
`
	if diff := cmp.Diff(want, doc.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
