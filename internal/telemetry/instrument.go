// Package telemetry contains what the packages of a program need to be observed: the definition of metrics (Instrument), the probes of a kubelet with
// the progress of a loop (Probes, Progress), and the HTTP servers for them (Serve). Package program sets up OpenTelemetry and the log.
//
// It imports no other package of this module, so that every package can use it.
package telemetry

import (
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// Instrument defines one metric. Each package with metrics has one table of instruments. They are created from the table, and
// docs/reference/metrics.md is generated from it, so the page, the dashboard and the alerts name only metrics that exist. Exactly one of Counter,
// UpDown, Gauge and Histogram is set; MakeInstruments fills it in.
type Instrument struct {
	Counter *metric.Int64Counter
	UpDown  *metric.Int64UpDownCounter
	// Gauge is observed by a callback, which the package registers.
	Gauge *metric.Int64ObservableGauge
	// Histogram is of seconds.
	Histogram *metric.Float64Histogram

	// Name is the name in OpenTelemetry.
	Name string
	// Unit is a UCUM unit: s, or the counted things in braces.
	Unit string
	// Labels are the keys of the attributes. No label may name an object, because the number of series must not grow with the
	// number of workloads.
	Labels []string
	// About describes the metric in a sentence.
	About string
}

// Counter returns the definition of a counter.
func Counter(into *metric.Int64Counter, name, unit, about string, labels ...string) Instrument {
	return Instrument{Counter: into, Name: name, Unit: unit, About: about, Labels: labels}
}

// UpDown returns the definition of a counter that can fall.
func UpDown(into *metric.Int64UpDownCounter, name, unit, about string, labels ...string) Instrument {
	return Instrument{UpDown: into, Name: name, Unit: unit, About: about, Labels: labels}
}

// Gauge returns the definition of a gauge, which the package observes by a callback.
func Gauge(into *metric.Int64ObservableGauge, name, unit, about string, labels ...string) Instrument {
	return Instrument{Gauge: into, Name: name, Unit: unit, About: about, Labels: labels}
}

// Duration returns the definition of a histogram of seconds, with buckets from 5 milliseconds to a quarter of an hour.
func Duration(into *metric.Float64Histogram, name, about string, labels ...string) Instrument {
	return Instrument{Histogram: into, Name: name, Unit: "s", About: about, Labels: labels}
}

// MakeInstruments creates every instrument of a table.
func MakeInstruments(meter metric.Meter, table []Instrument) error {
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
		*i.Histogram, err = meter.Float64Histogram(i.Name, unit, about,
			metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900))
	}
	return err
}
