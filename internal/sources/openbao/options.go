package openbao

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/events"
)

// Options configure a Feed. The fields of the first group are flags of the watcher.
type Options struct {
	// ConfigFile is the path of the configuration of the stores. If empty, no store is watched.
	ConfigFile string
	// AuditListen is the address of the HTTP audit receiver. Its files are in the configuration. If empty, there is no receiver.
	AuditListen string

	// Known returns the paths that are known to exist in a mount, so that deletions are detected.
	Known func(store, namespace, mount string) []string
	// Referenced returns the referenced paths of all stores, for stores that are polled by reference. If nil, no store can be polled by reference.
	Referenced func(ctx context.Context) ([]Reference, error)
	// Logger and Meter receive reports about the feed itself, and Now is its clock.
	Logger *slog.Logger
	Meter  metric.Meter
	Now    func() time.Time
	// Transport replaces the HTTP transport to every store. Default: one for each store with its TLS settings.
	Transport http.RoundTripper
	// Listen opens a listener.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

// Reference is a path with a reader, such as an ExternalSecret.
type Reference struct {
	Server string           // the address of the store that the reader uses, in the form of events.StoreAddress
	Path   events.StorePath // without the name of its store
}

// DefaultOptions returns the options of a feed that watches no store.
func DefaultOptions() Options {
	return Options{Known: func(string, string, string) []string { return nil }, Now: time.Now, Listen: new(net.ListenConfig).Listen}
}

// AddFlags adds the flags of the first group.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ConfigFile, "openbao-config", o.ConfigFile,
		"`file` with the OpenBao and Vault stores to watch, in YAML; empty watches none")
	flags.StringVar(&o.AuditListen, "openbao-audit-listen", o.AuditListen,
		"`address` to listen on for OpenBao's HTTP audit device, at /v1/audit/<store>, with the files that audit in --openbao-config names; "+
			"empty disables it")
}

// Enabled reports whether any store is watched.
func (o *Options) Enabled() bool { return o.ConfigFile != "" }

// Validate returns all problems of the options, one line each. It does not read files: New does.
func (o *Options) Validate() error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.AuditListen != "" {
		if !o.Enabled() {
			complain("--openbao-audit-listen: %q has no use without --openbao-config", o.AuditListen)
		}
		if _, _, err := net.SplitHostPort(o.AuditListen); err != nil {
			complain("--openbao-audit-listen: %q is not an address, want host:port", o.AuditListen)
		}
	}
	return errors.Join(problems...)
}
