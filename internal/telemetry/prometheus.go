package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/otlptranslator"
)

// prometheusType returns the type at /metrics: counter, gauge or histogram.
func (i *Instrument) prometheusType() string {
	switch {
	case i.Counter != nil:
		return "counter"
	case i.Histogram != nil:
		return "histogram"
	default:
		return "gauge"
	}
}

// Prometheus returns the name of the metric at /metrics. A histogram has this name with the suffixes _bucket, _sum and _count.
func (i *Instrument) Prometheus() (string, error) {
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
		return "", fmt.Errorf("naming %s: %w", i.Name, err)
	}
	return name, nil
}

// PrometheusLabels returns the names of the metric's labels at /metrics.
func (i *Instrument) PrometheusLabels() ([]string, error) {
	namer := otlptranslator.LabelNamer{}
	labels := make([]string, 0, len(i.Labels))
	for _, key := range i.Labels {
		label, err := namer.Build(key)
		if err != nil {
			return nil, fmt.Errorf("naming a label of %s: %w", i.Name, err)
		}
		labels = append(labels, label)
	}
	return labels, nil
}

// Reference writes a table of instruments as Markdown, under a second-level heading with the title, and the text.
func Reference(w io.Writer, title, text string, table []Instrument) error {
	var doc bytes.Buffer
	fmt.Fprintf(&doc, "\n## %s\n\n%s\n", title, text)
	doc.WriteString("\n| OpenTelemetry | Prometheus | Type | Unit | Labels | Meaning |\n| --- | --- | --- | --- | --- | --- |\n")
	for i := range table {
		name, err := table[i].Prometheus()
		if err != nil {
			return err
		}
		labels, err := table[i].PrometheusLabels()
		if err != nil {
			return err
		}
		for n := range labels {
			labels[n] = "`" + labels[n] + "`"
		}
		fmt.Fprintf(&doc, "| `%s` | `%s` | %s | %s | %s | %s |\n", table[i].Name, name, table[i].prometheusType(),
			table[i].Unit, strings.Join(labels, ", "), table[i].About)
	}
	_, err := w.Write(doc.Bytes())
	return err
}
