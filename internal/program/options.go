package program

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/kube"
)

// Options are the flags that all programs have. Exporters of traces and metrics are configured by the standard OTEL_* environment
// variables instead.
type Options struct {
	// Cluster is the name of the cluster in subjects and events, a DNS label. Required.
	Cluster string
	// Kube selects the API server.
	Kube kube.Options
	// NATS selects the NATS servers. run sets the cluster, the name, the role and the logger.
	NATS bus.ConnectOptions
	// Log selects the level and the format of the log.
	Log LogOptions
	// MetricsAddr is the host:port that serves /metrics. Default ":8080"; empty means off, port 0 means any free one.
	MetricsAddr string
	// HealthAddr is the host:port that serves /livez and /readyz. Default ":9440"; empty means off, port 0 means any free one.
	HealthAddr string
	// ReplacesCluster is the UID of the cluster that had this name before. Empty if none did.
	ReplacesCluster string
}

// defaultOptions returns the defaults of a program. Its name is part of the user agent.
func defaultOptions(name, version string) Options {
	return Options{
		Kube: kube.Options{UserAgent: "keyturn-" + name + "/" + version},
		Log:  DefaultLogOptions(), MetricsAddr: ":8080", HealthAddr: ":9440",
	}
}

// addClusterFlags adds the flags that all programs have: the cluster, the API server and NATS.
func (o *Options) addClusterFlags(flags *pflag.FlagSet) {
	o.addServerFlags(flags)
	o.NATS.AddFlags(flags)
}

// addServerFlags adds the flags of a program with NATS in its process: the cluster and its API server.
func (o *Options) addServerFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Cluster, "cluster", o.Cluster, "`name` of the cluster in subjects and events, a DNS label")
	o.Kube.AddFlags(flags)
}

// addRunFlags adds the flags of a program that checks the identity of the cluster.
func (o *Options) addRunFlags(flags *pflag.FlagSet) {
	o.addServingFlags(flags)
	flags.StringVar(&o.ReplacesCluster, "replaces-cluster", "",
		"`UID` of the namespace kube-system of the cluster that this one replaces under the same name")
}

// addServingFlags adds the flags of a program that does not check the identity of the cluster.
func (o *Options) addServingFlags(flags *pflag.FlagSet) {
	o.Log.AddFlags(flags)
	flags.StringVar(&o.MetricsAddr, "metrics-addr", o.MetricsAddr, "`address` that serves /metrics; empty turns it off")
	flags.StringVar(&o.HealthAddr, "health-addr", o.HealthAddr, "`address` that serves /livez and /readyz; empty turns it off")
}

// validate returns an error with a line for each invalid field: the flag, its value and the valid ones. The parts of the program validate Cluster.
func (o *Options) validate() error {
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
