package sources

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/health"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// Options are what a Watcher is made of. The fields of the first group are flags of cmd/watcher.
type Options struct {
	// Cluster is the name of the cluster in subjects and events. A DNS-1123 label; it has no default.
	Cluster string
	// Namespaces are the namespaces to watch. Empty: all of them.
	Namespaces []string
	// Kinds are the kinds of sources to watch, of those that Kinds lists. Default: those that every cluster
	// has, configmap and secret. Kinds of custom resources that are not installed are looked for until they are. Empty: only
	// the secret stores are watched.
	Kinds []string
	// KeyFile is the path of the fingerprint keys: see LoadKeyring. It has no default.
	KeyFile string
	// Selector leaves out, at the API server, the sources whose labels it does not match. Empty: all match.
	Selector string
	// NamespaceSelector leaves out the namespaces whose labels it does not match. Empty: all match. It needs the right to
	// list and watch namespaces.
	NamespaceSelector string
	// Workers is how many events are published at once. Default 8.
	Workers int

	// OpenBao are the secret stores to watch. Default: none.
	OpenBao openbao.Options

	// Client talks to the API server, Dynamic about custom resources. Dynamic may be nil where Kinds has none of these, and
	// both where StoresAlone.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// LookAgain is how long a kind that is not installed is left alone before it is looked for again. Default one minute.
	LookAgain time.Duration
	// Logger, Tracer and Meter are what the watcher tells about itself with.
	Logger *slog.Logger
	Tracer trace.Tracer
	Meter  metric.Meter
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Progress is called once for each worker and returns that worker's progress, for the liveness probe. Default: one that nobody probes.
	Progress func() *health.Progress
}

// DefaultOptions are the options of a watcher of the kinds that every cluster has, in all namespaces.
func DefaultOptions() Options {
	return Options{
		Kinds: defaultKinds(), Workers: 8, LookAgain: time.Minute, Now: time.Now,
		OpenBao: openbao.DefaultOptions(), Progress: func() *health.Progress { return nil },
	}
}

// AddFlags binds the options of the first group to flags, but for those that both programs have.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.KeyFile, "fingerprint-key-file", o.KeyFile,
		"`file` with the keys that content is fingerprinted under: one a line, 32 bytes or more in base64, the current one first. Make one with: openssl rand -base64 32")
	flags.StringSliceVar(&o.Kinds, "sources", o.Kinds, "`kinds` of sources to watch, separated by commas, of: "+strings.Join(Kinds(), ", ")+"; empty is none but the secret stores")
	flags.StringVar(&o.Selector, "selector", o.Selector, "label `selector` that sources must match; empty matches all")
	flags.StringVar(&o.NamespaceSelector, "namespace-selector", o.NamespaceSelector,
		"label `selector` that the namespaces of sources must match; empty matches all. Needs the right to list and watch namespaces")
	flags.IntVar(&o.Workers, "publish-workers", o.Workers, "`number` of events that are published at once")
	o.OpenBao.AddFlags(flags)
}

// StoresAlone tells whether nothing is watched but secret stores, so that no cluster is needed. What ExternalSecrets
// reference is not known then: paths are polled by mount.
func (o *Options) StoresAlone() bool { return len(o.Kinds) == 0 && o.OpenBao.Enabled() }

// Validate reports everything that is wrong with the options, a line each.
func (o *Options) Validate() error {
	problems := []error{events.ValidateCluster(o.Cluster), o.OpenBao.Validate()}
	if o.KeyFile == "" {
		problems = append(problems, errors.New(`--fingerprint-key-file: is empty, want the path of a key file; make one with: openssl rand -base64 32`))
	}
	if len(o.Kinds) == 0 && !o.OpenBao.Enabled() {
		problems = append(problems, errors.New("--sources: is empty, want at least one kind, or secret stores by --openbao-config"))
	}
	if _, err := selectSources(o.Kinds); err != nil {
		problems = append(problems, err)
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		problems = append(problems, fmt.Errorf("--selector: %q is not a label selector: %w", o.Selector, err))
	}
	if _, err := labels.Parse(o.NamespaceSelector); err != nil {
		problems = append(problems, fmt.Errorf("--namespace-selector: %q is not a label selector: %w", o.NamespaceSelector, err))
	}
	if o.NamespaceSelector != "" && len(o.Kinds) == 0 {
		problems = append(problems, errors.New("--namespace-selector: selects nothing without --sources, want at least one kind, or no selector"))
	}
	if o.NamespaceSelector != "" && len(o.Namespaces) > 0 {
		problems = append(problems, errors.New("--namespace-selector: cannot be given together with namespaces"))
	}
	if o.Workers < 1 {
		problems = append(problems, fmt.Errorf("--publish-workers: %d is too few, want 1 or more", o.Workers))
	}
	return errors.Join(problems...)
}
