package telemetry

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

// build is the metric of the running build. target_info has the version, too, but cannot be joined by pod with the series of a dashboard
// or an alert.
type build struct{ info metric.Int64ObservableGauge }

func (b *build) instruments() []instrument.Instrument {
	return []instrument.Instrument{{
		Gauge: &b.info, Name: "keyturn.build.info", Labels: []string{"version", "revision", "goversion"},
		About: "Always 1. Its labels are the version of the program, the commit if the go tool knew it, and the version of Go.",
	}}
}

// observeBuild registers the metric for the lifetime of the provider.
func observeBuild(meters metric.MeterProvider, version string) error {
	b := &build{}
	meter := meters.Meter(scope)
	if err := instrument.Make(meter, b.instruments()); err != nil {
		return err
	}
	labels := metric.WithAttributes(
		attribute.String("version", version), attribute.String("revision", revision()), attribute.String("goversion", runtime.Version()))
	_, err := meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		observer.ObserveInt64(b.info, 1, labels)
		return nil
	}, b.info)
	if err != nil {
		return fmt.Errorf("registering keyturn.build.info: %w", err)
	}
	return nil
}

// revision returns the commit of this binary, or "" if the go command has not stamped it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}
