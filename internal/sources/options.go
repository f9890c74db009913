package sources

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/internal/sources/openbao"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// Options configure a Watcher. The fields of the first group are flags of the watcher.
type Options struct {
	Cluster    string   // the name of the cluster in subjects and events, a DNS-1123 label; required
	Namespaces []string // the namespaces to watch; empty means all
	// IgnoreNamespaces are the namespaces to leave out when all are watched. The API server filters them. Default: none.
	IgnoreNamespaces []string
	// Kinds are the kinds of sources to watch: configmap, secret, externalsecret, certificate, secretproviderclass. The watcher waits for a custom
	// kind that is not installed. Default: configmap and secret. If empty, only secret stores are watched.
	Kinds    []string
	KeyFile  string // the path of the file with the fingerprint keys; required
	Keys     []byte // the content of the key file, which KeyFile then only names; default: that of the file
	Selector string // a label selector that sources must match, which the API server applies; empty matches all
	// NamespaceSelector is a label selector that namespaces must match. If empty, all match. It needs permission to list and watch namespaces.
	NamespaceSelector string
	// Reloader selects the behaviors of Reloader to imitate. The watcher uses only the keys of ignore-annotation and search-match-annotation.
	// Default: none.
	Reloader reloader.Settings
	// NamespaceBudget is how many bytes of events a namespace may publish per hour, with up to four hours of it at once. Further changes wait, and
	// only the newest change of each source is published. Zero means no limit. Default 4 MiB.
	NamespaceBudget int

	OpenBao openbao.Options // the secret stores to watch; default: none

	// Client reads the built-in kinds and Dynamic the custom ones. Dynamic may be nil if Kinds has no custom kind, and both may be nil if StoresAlone
	// returns true.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Workers is the maximum number of events that are published concurrently, which is lower while NATS is slow. Default 8.
	Workers int
	// LookAgain is the interval between checks for a custom kind that is not installed. Default: one minute. CheckStream is the interval between
	// checks for lost events on the stream. Default: 30 seconds.
	LookAgain, CheckStream time.Duration
	Logger                 *slog.Logger
	Tracer                 trace.Tracer
	Meter                  metric.Meter
	Now                    func() time.Time // the clock; default time.Now
	// Progress is called once for each worker, and returns that worker's progress for the liveness probe. Default: a Progress that is never probed.
	Progress func() *telemetry.Progress
}

// DefaultOptions returns the options to watch the kinds of every cluster, in all namespaces.
func DefaultOptions() Options {
	return Options{
		Kinds: []string{string(events.KindConfigMap), string(events.KindSecret)}, Workers: 8, NamespaceBudget: 4 << 20,
		LookAgain: time.Minute, CheckStream: 30 * time.Second, Now: time.Now, OpenBao: openbao.DefaultOptions(),
		Progress: func() *telemetry.Progress { return nil },
	}
}

// AddFlags adds the watcher's own flags, without those that it shares with the actuator.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.KeyFile, "fingerprint-key-file", o.KeyFile,
		"`file` with the fingerprint keys: one a line, at least 32 bytes in base64, the current one first. Create one with: openssl rand -base64 32")
	flags.StringSliceVar(&o.Kinds, "sources", o.Kinds,
		"comma-separated `kinds` of sources to watch: "+strings.Join(kinds.Names(), ", ")+"; empty watches secret stores only")
	flags.StringSliceVar(&o.IgnoreNamespaces, "ignore-namespaces", o.IgnoreNamespaces,
		"`namespaces` to ignore, separated by commas; cannot be combined with --namespaces")
	flags.StringVar(&o.Selector, "selector", o.Selector, "label `selector` that sources must match; empty matches all")
	flags.StringVar(&o.NamespaceSelector, "namespace-selector", o.NamespaceSelector,
		"label `selector` that the namespaces of sources must match; empty matches all. Needs permission to list and watch namespaces")
	flags.IntVar(&o.NamespaceBudget, "namespace-budget", o.NamespaceBudget,
		"`bytes` of events that a namespace may publish per hour, with up to four hours of it at once; further changes wait; 0 disables the limit")
	reloader.AddFlag(flags, &o.Reloader)
	o.OpenBao.AddFlags(flags)
}

func (o *Options) keyring() (*kinds.Keyring, error) {
	if o.Keys == nil {
		return kinds.LoadKeyring(o.KeyFile)
	}
	return kinds.ReadKeyring(o.KeyFile, o.Keys)
}

// StoresAlone reports whether only secret stores are watched, so that no cluster is needed. Paths are then polled by mount, because the references of
// ExternalSecrets are unknown.
func (o *Options) StoresAlone() bool { return len(o.Kinds) == 0 && o.OpenBao.Enabled() }

// scope returns the scope of the watched objects.
func (o *Options) scope() events.Scope {
	scope := events.Scope{
		NamespaceSelector: o.NamespaceSelector, Selector: o.Selector,
		Namespaces: slices.Sorted(slices.Values(o.Namespaces)), IgnoredNamespaces: slices.Sorted(slices.Values(o.IgnoreNamespaces)),
	}
	for _, kind := range slices.Sorted(slices.Values(o.Kinds)) {
		scope.Kinds = append(scope.Kinds, events.Kind(kind))
	}
	return scope
}

// Validate returns an error with a line for each problem.
func (o *Options) Validate() error {
	cluster := events.ValidateCluster(o.Cluster)
	_, names := kinds.Select(o.Kinds)
	_, objects := labels.Parse(o.Selector)
	_, namespaces := labels.Parse(o.NamespaceSelector)
	_, annotations := reloader.Parse(o.Reloader.Annotations)
	return errors.Join(
		problemIf(cluster != nil, "--cluster: %w", cluster),
		o.OpenBao.Validate(),
		problemIf(o.KeyFile == "", "--fingerprint-key-file: is empty, want the path of a key file; make one with: openssl rand -base64 32"),
		problemIf(len(o.Kinds) == 0 && !o.OpenBao.Enabled(),
			"--sources: is empty, want any of %s, or --openbao-config", strings.Join(kinds.Names(), ", ")),
		names,
		kube.ValidateIgnored(o.IgnoreNamespaces, o.Namespaces),
		problemIf(objects != nil, "--selector: %q, want a label selector: %w", o.Selector, objects),
		problemIf(namespaces != nil, "--namespace-selector: %q, want a label selector: %w", o.NamespaceSelector, namespaces),
		problemIf(o.NamespaceSelector != "" && len(o.Kinds) == 0, "--namespace-selector: %q, want none without --sources", o.NamespaceSelector),
		problemIf(o.NamespaceSelector != "" && len(o.Namespaces) > 0, "--namespace-selector: %q, want none with --namespaces", o.NamespaceSelector),
		o.Reloader.Validate(), annotations,
		problemIf(o.NamespaceBudget < 0, "--namespace-budget: %d, want 0 or more", o.NamespaceBudget))
}

func problemIf(isWrong bool, format string, args ...any) error {
	if !isWrong {
		return nil
	}
	return fmt.Errorf(format, args...)
}
