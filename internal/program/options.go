package program

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// Options are the flags that all programs have. Exporters of traces and metrics are configured by the standard OTEL_* environment
// variables instead.
type Options struct {
	// Cluster is the name of the cluster in subjects and events, a DNS label. Required.
	Cluster string
	// Kube selects the API server.
	Kube kube.Options
	// NATS selects the NATS servers. run sets the cluster, the name, the role and the logger.
	NATS events.ConnectOptions
	// Log selects what is logged, and how.
	Log telemetry.LogOptions
	// MetricsAddr is the host:port that serves /metrics. Default ":8080"; empty means off, port 0 means any free one.
	MetricsAddr string
	// HealthAddr is the host:port that serves /livez and /readyz. Default ":9440"; empty means off, port 0 means any free one.
	HealthAddr string
	// Identity detects another cluster with the same name. run sets the client and the logger.
	Identity identity.Options
}

// defaultOptions returns the defaults of a program. Its name is part of the user agent.
func defaultOptions(name, version string) Options {
	return Options{
		Kube: kube.Options{UserAgent: "keyturn-" + name + "/" + version},
		Log:  telemetry.DefaultLogOptions(), MetricsAddr: ":8080", HealthAddr: ":9440",
	}
}

// AddClusterFlags adds the flags that the program shares with its commands: which cluster, API server and NATS.
func (o *Options) AddClusterFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Cluster, "cluster", o.Cluster, "`name` of the cluster in subjects and events, a DNS label")
	o.Kube.AddFlags(flags)
	o.NATS.AddFlags(flags)
}

// AddRunFlags adds the flags of the program itself, which its commands do not have.
func (o *Options) AddRunFlags(flags *pflag.FlagSet) {
	o.AddServingFlags(flags)
	o.Identity.AddFlags(flags)
}

// AddServingFlags adds the flags of AddRunFlags except those of Identity, for a program that does not compare the identity of the cluster.
func (o *Options) AddServingFlags(flags *pflag.FlagSet) {
	o.Log.AddFlags(flags)
	flags.StringVar(&o.MetricsAddr, "metrics-addr", o.MetricsAddr, "`address` that serves /metrics; empty turns it off")
	flags.StringVar(&o.HealthAddr, "health-addr", o.HealthAddr, "`address` that serves /livez and /readyz; empty turns it off")
}

// Validate returns an error with a line for each invalid field: the flag, its value and what is allowed. The parts of the program that use
// Cluster validate it.
func (o *Options) Validate() error {
	errs := []error{o.Log.Validate()}
	if !validAddr(o.MetricsAddr) {
		errs = append(errs, fmt.Errorf("--metrics-addr: %q, want host:port, :port or empty", o.MetricsAddr))
	}
	if !validAddr(o.HealthAddr) {
		errs = append(errs, fmt.Errorf("--health-addr: %q, want host:port, :port or empty", o.HealthAddr))
	}
	return errors.Join(errs...)
}

// validAddr reports whether addr is empty or has the form of an address to listen on.
func validAddr(addr string) bool {
	if addr == "" {
		return true
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
