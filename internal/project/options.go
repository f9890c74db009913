package project

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Options configures a Projector. All fields are required unless they say otherwise.
type Options struct {
	// ConfigFile is the file with the kinds, their fields, and the Secrets.
	ConfigFile string
	// Resync is how often all resources are compared again, independently of events. The default is 10 minutes, the minimum 1 second.
	Resync time.Duration

	// Client reads Secrets and writes Kubernetes Events. Dynamic watches and writes the resources. It must not log warnings, which may quote values.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Random is crypto/rand.Reader, and Now is time.Now, except in tests.
	Random io.Reader
	Now    func() time.Time
	Logger *slog.Logger
	Tracer trace.Tracer
	Meter  metric.Meter
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options { return Options{Resync: 10 * time.Minute} }

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ConfigFile, "projections-config", o.ConfigFile,
		"`file` that says which fields of which kinds may have values of which Secrets (docs/projection.md); required")
	flags.DurationVar(&o.Resync, "resync", o.Resync, "how often all resources and their Secrets are compared again, whatever events say")
}

// Validate returns an error for an invalid field. It does not read the file, which New does.
func (o *Options) Validate() error {
	switch {
	case o.ConfigFile == "":
		return errors.New("--projections-config: is empty, want a file")
	case o.Resync < time.Second:
		return fmt.Errorf("--resync: %s, want at least 1s", o.Resync)
	}
	return nil
}
