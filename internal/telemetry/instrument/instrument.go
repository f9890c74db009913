// Package instrument says what is measured. Each package that measures has one table of instruments, from which it makes
// them and from which docs/metrics.md is written: so that the page, the dashboard and the alerts name nothing that is not
// there.
package instrument

import (
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// Instrument is one thing that is measured. Exactly one of Counter, UpDown, Gauge and Histogram is set, and is what Make
// fills in.
type Instrument struct {
	Counter *metric.Int64Counter
	UpDown  *metric.Int64UpDownCounter
	// Gauge is observed by a callback, which is registered for it.
	Gauge     *metric.Int64ObservableGauge
	Histogram *metric.Float64Histogram

	// Name is that of OpenTelemetry; Prometheus gives the one of Prometheus.
	Name string
	// Unit is one of UCUM: s, or what is counted in braces.
	Unit string
	// Labels are the keys of the attributes with which it is measured. None names an object: how many there are must not
	// depend on how many workloads there are.
	Labels []string
	// About is a sentence of what it tells.
	About string
	// Buckets are the bounds of a Histogram.
	Buckets []float64
}

// Latency are buckets in seconds, for what may take from a moment to a quarter of an hour.
func Latency() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900}
}

// Make makes every instrument of a table.
func Make(meter metric.Meter, table []Instrument) error {
	for i := range table {
		if err := table[i].make(meter); err != nil {
			return fmt.Errorf("making %s: %w", table[i].Name, err)
		}
	}
	return nil
}

func (i *Instrument) make(meter metric.Meter) (err error) {
	unit, about := metric.WithUnit(i.Unit), metric.WithDescription(i.About)
	switch {
	case i.Counter != nil:
		*i.Counter, err = meter.Int64Counter(i.Name, unit, about)
	case i.UpDown != nil:
		*i.UpDown, err = meter.Int64UpDownCounter(i.Name, unit, about)
	case i.Gauge != nil:
		*i.Gauge, err = meter.Int64ObservableGauge(i.Name, unit, about)
	case i.Histogram != nil:
		*i.Histogram, err = meter.Float64Histogram(i.Name, unit, about, metric.WithExplicitBucketBoundaries(i.Buckets...))
	}
	return err
}
