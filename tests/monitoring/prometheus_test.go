package monitoring

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/keyturn/keyturn/internal/telemetry"
	"github.com/keyturn/keyturn/tests/testkit"
)

// prometheusType returns the type at /metrics: counter, gauge or histogram.
func prometheusType(i *telemetry.Instrument) string {
	switch {
	case i.Counter != nil:
		return "counter"
	case i.Histogram != nil:
		return "histogram"
	default:
		return "gauge"
	}
}

// prometheusName returns the name of the metric at /metrics. A histogram has this name with the suffixes _bucket, _sum and _count.
func prometheusName(t *testing.T, i *telemetry.Instrument) string {
	t.Helper()
	kind := otlptranslator.MetricType(otlptranslator.MetricTypeGauge)
	switch {
	case i.Counter != nil:
		kind = otlptranslator.MetricTypeMonotonicCounter
	case i.UpDown != nil:
		kind = otlptranslator.MetricTypeNonMonotonicCounter
	case i.Histogram != nil:
		kind = otlptranslator.MetricTypeHistogram
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(otlptranslator.Metric{Name: i.Name, Unit: i.Unit, Type: kind})
	if err != nil {
		t.Fatalf("naming %s: %v", i.Name, err)
	}
	return name
}

// prometheusLabels returns the names of the metric's labels at /metrics.
func prometheusLabels(t *testing.T, i *telemetry.Instrument) []string {
	t.Helper()
	namer := otlptranslator.LabelNamer{}
	labels := make([]string, 0, len(i.Labels))
	for _, key := range i.Labels {
		label, err := namer.Build(key)
		if err != nil {
			t.Fatalf("naming a label of %s: %v", i.Name, err)
		}
		labels = append(labels, label)
	}
	return labels
}

// writeReference writes a table of instruments as Markdown, under a second-level heading with the title, and the text.
func writeReference(t *testing.T, doc *bytes.Buffer, title, text string, table []telemetry.Instrument) {
	t.Helper()
	fmt.Fprintf(doc, "\n## %s\n\n%s\n", title, text)
	doc.WriteString("\n| OpenTelemetry | Prometheus | Type | Unit | Labels | Meaning |\n| --- | --- | --- | --- | --- | --- |\n")
	for i := range table {
		labels := prometheusLabels(t, &table[i])
		for n := range labels {
			labels[n] = "`" + labels[n] + "`"
		}
		fmt.Fprintf(doc, "| `%s` | `%s` | %s | %s | %s | %s |\n", table[i].Name, prometheusName(t, &table[i]), prometheusType(&table[i]),
			table[i].Unit, strings.Join(labels, ", "), table[i].About)
	}
}

// example has an instrument of each type.
type example struct {
	counter   metric.Int64Counter
	up        metric.Int64UpDownCounter
	gauge     metric.Int64ObservableGauge
	histogram metric.Float64Histogram
}

func (e *example) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		{Counter: &e.counter, Name: "a.things", Unit: "{thing}", Labels: []string{"error.type"}, About: "Things."},
		{UpDown: &e.up, Name: "a.total.by.namespace", About: "More things."},
		{Gauge: &e.gauge, Name: "a.last", Unit: "s", About: "When it was."},
		{Histogram: &e.histogram, Name: "a.duration", Unit: "s", About: "How long."},
	}
}

// The names on the page are computed here, and those at /metrics by the exporter.
func TestTheNamesAreThoseOfTheExporter(t *testing.T) {
	registry := prometheus.NewRegistry()
	reader, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutTargetInfo(), promexporter.WithoutScopeInfo(),
		promexporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	testkit.Must(t, err)
	meter, e := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(""), &example{}
	testkit.Must(t, telemetry.MakeInstruments(meter, e.instruments()))
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(e.gauge, 1)
		return nil
	}, e.gauge)
	testkit.Must(t, err)
	e.counter.Add(t.Context(), 1, metric.WithAttributes(attribute.String("error.type", "x")))
	e.up.Add(t.Context(), 1)
	e.histogram.Record(t.Context(), 1.5)

	families, err := registry.Gather()
	testkit.Must(t, err)
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
		want[prometheusName(t, &i)] = append([]string{prometheusType(&i)}, prometheusLabels(t, &i)...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-definition +exporter):\n%s", diff)
	}
}
