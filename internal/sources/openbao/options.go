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

// Options are what a Feed is made of. The fields of the first group are flags of cmd/watcher.
type Options struct {
	// ConfigFile is the path of the configuration of the stores: see Config. Empty: no store is watched.
	ConfigFile string
	// AuditListen is the address of the HTTP audit receiver. Empty: there is none.
	AuditListen string
	// AuditTokenFile is the path of the bearer tokens of the HTTP audit receiver, one a line; each of them is accepted. It is
	// read again when it has changed.
	AuditTokenFile string
	// AuditTLSCertFile and AuditTLSKeyFile make the HTTP audit receiver speak TLS. They are read again when they have changed.
	AuditTLSCertFile string
	AuditTLSKeyFile  string
	// SocketListen is the address of the receiver of the socket audit device, host:port or unix:/path, where one store is
	// configured. Empty: there is none but those in the configuration.
	SocketListen string

	// Known lists the paths that are known to be in a mount, so that those that have vanished are found. Default: none.
	Known func(store, namespace, mount string) []string
	// Referenced lists what somebody reads, of any store, for stores that are polled by reference. Default: nobody can tell.
	Referenced func(ctx context.Context) ([]Reference, error)
	// Logger and Meter are what the feed tells about itself with.
	Logger *slog.Logger
	Meter  metric.Meter
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Transport makes the connections to the stores in place of one with their TLS settings. Default: none.
	Transport http.RoundTripper
	// Listen opens a listener. Default: that of net.ListenConfig.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

// Reference is a path that somebody reads.
type Reference struct {
	// Server is the address under which the reader knows the store, in the form of events.StoreAddress.
	Server string
	// Path is what is read. The name of its store is empty.
	Path events.StorePath
}

// DefaultOptions are the options of a feed that watches no store.
func DefaultOptions() Options {
	return Options{Now: time.Now, Listen: new(net.ListenConfig).Listen}
}

// AddFlags binds the options of the first group to flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ConfigFile, "openbao-config", o.ConfigFile,
		"`file` with the OpenBao and Vault stores to watch, in YAML; empty watches none")
	flags.StringVar(&o.AuditListen, "openbao-audit-listen", o.AuditListen,
		"`address` to receive the audit of OpenBao's HTTP audit device on, at /v1/audit/<store>; empty receives none")
	flags.StringVar(&o.AuditTokenFile, "openbao-audit-token-file", o.AuditTokenFile,
		"`file` with the bearer tokens that the HTTP audit device may send, one a line")
	flags.StringVar(&o.AuditTLSCertFile, "openbao-audit-tls-cert-file", o.AuditTLSCertFile,
		"`file` with the certificate of the audit receiver, in PEM; empty speaks HTTP without TLS")
	flags.StringVar(&o.AuditTLSKeyFile, "openbao-audit-tls-key-file", o.AuditTLSKeyFile,
		"`file` with the private key of the audit receiver, in PEM")
	flags.StringVar(&o.SocketListen, "openbao-socket-listen", o.SocketListen,
		"`address` to receive the audit of the socket audit device on, host:port or unix:/path, where one store is configured; empty receives none")
}

// Enabled tells whether stores are to be watched.
func (o *Options) Enabled() bool { return o.ConfigFile != "" }

// Validate reports everything that is wrong with the options, a line each. What is in the files is reported by New.
func (o *Options) Validate() error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, flag := range []struct{ name, value string }{
		{"openbao-audit-listen", o.AuditListen}, {"openbao-socket-listen", o.SocketListen},
	} {
		if flag.value != "" && !o.Enabled() {
			refuse("--%s: %q has no use without --openbao-config", flag.name, flag.value)
		}
	}
	if o.AuditListen != "" {
		if _, _, err := net.SplitHostPort(o.AuditListen); err != nil {
			refuse("--openbao-audit-listen: %q is not an address, want host:port", o.AuditListen)
		}
		if o.AuditTokenFile == "" {
			refuse("--openbao-audit-token-file: is empty, want the path of a file with the token that the audit device sends; make one with: openssl rand -hex 32")
		}
	}
	if (o.AuditTLSCertFile == "") != (o.AuditTLSKeyFile == "") {
		refuse("--openbao-audit-tls-cert-file: %q and --openbao-audit-tls-key-file: %q, want both or neither", o.AuditTLSCertFile, o.AuditTLSKeyFile)
	}
	if o.SocketListen != "" {
		if _, err := parseSocketAddress(o.SocketListen); err != nil {
			refuse("--openbao-socket-listen: %w", err)
		}
	}
	return errors.Join(problems...)
}
