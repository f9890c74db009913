package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/notify"
)

// Actuator is the program that rolls workloads when their sources change. Its fields are its options.
type Actuator struct {
	Process Options
	Actuate actuate.Options
	Notify  notify.Options
	// Call configures a webhook that is called instead of rolling workloads, if Actuate.Reloader has its URL. Actuate and Notify are then unused.
	Call notify.CallOptions
	// Embedded configures the NATS server in this process. If it has a folder for the streams, the server is used instead of Process.NATS.
	Embedded embedded.Options
	// Replicas is the number of servers of keyturn nats that replicate the streams. If it is not 0, the actuator declares the streams at
	// Process.NATS; otherwise, an operator declares them.
	Replicas int

	// server is the embedded server, after its start.
	server *embedded.Server
	// majority knows whether the server has contact with most servers, if there are several.
	majority *bus.Majority
	// guardInterval is the interval between comparisons of the streams with the required ones: one minute, except in tests.
	guardInterval time.Duration
}

// NewActuator returns an actuator with the defaults.
func NewActuator(version string) *Actuator {
	return &Actuator{
		Process: defaultOptions("actuator", version), Actuate: actuate.DefaultOptions(), guardInterval: time.Minute,
	}
}

// AddFlags adds the flags of the options.
func (a *Actuator) AddFlags(flags *pflag.FlagSet) {
	a.Process.addClusterFlags(flags)
	flags.StringSliceVar(&a.Actuate.Namespaces, "namespaces", nil, "`namespaces` whose workloads to roll, separated by commas; empty means all")
	flags.StringSliceVar(&a.Actuate.StoresFrom, "stores-from", nil,
		"other `clusters` whose watchers watch secret stores for this one, separated by commas; name@domain if the "+
			"server of --nats-store-dir or --nats-replicas copies their events from that JetStream domain, over a leaf node in --nats-config")
	a.Process.addRunFlags(flags)
	a.Actuate.AddFlags(flags)
	a.Notify.AddFlags(flags)
	a.addEmbeddedFlags(flags)
}

// Run runs the actuator until ctx ends or a step fails. An error about the options has a line for each problem. Log lines go to log.
func (a *Actuator) Run(ctx context.Context, log io.Writer, build Build) error {
	a.Actuate.Cluster, a.Call.URL = a.Process.Cluster, a.Actuate.Reloader.WebhookURL
	if a.Embedded.StoreDir != "" {
		// Other commands in the pod read the address and the certificates from its variables. The program itself connects within the process.
		nats := &a.Process.NATS
		nats.URL, nats.CAFile = "", ""
	}
	err := errors.Join(a.Process.validate(), a.Actuate.Validate(), a.validateNATS(), a.validateCall(), refuseTokens(os.LookupEnv))
	if err != nil {
		return err
	}
	return run(ctx, program{
		Name: "actuator", Build: build, Options: a.Process, Log: log,
		Parts: []part{{Role: "actuator", Prepare: a.prepare, Connect: a.connect, Identify: checkName}},
	})
}

// refuseTokens returns an error if the environment has a token of a secret store: only the watcher reads stores, and a variable of both programs
// would come from a ConfigMap.
func refuseTokens(lookup func(string) (string, bool)) error {
	for _, name := range []string{"BAO_TOKEN", "VAULT_TOKEN"} {
		if _, set := lookup(name); set {
			return fmt.Errorf("%s is set, but the actuator reads no secret store; set it only for the watcher, in the Secret "+
				"keyturn-watcher-env", name)
		}
	}
	return nil
}

// validateCall returns an error if the options of the webhook are invalid, or combined with options that have no effect then.
func (a *Actuator) validateCall() error {
	if a.Call.URL != "" && (a.Actuate.DryRun || a.Actuate.ForceSync || a.Notify.ConfigFile != "") {
		return errors.New("--reloader: webhook-url cannot be combined with --dry-run, --force-sync or --notify-config: " +
			"with a webhook nothing is rolled")
	}
	if a.Call.URL != "" && (a.Actuate.RollOnCreate == "always" || a.Actuate.RollOnDelete) {
		return errors.New("--reloader: webhook-url cannot be combined with --roll-on-create=always or --roll-on-delete: " +
			"it is called only when content changes")
	}
	if err := a.Call.Validate(); err != nil {
		return fmt.Errorf("--reloader: webhook-url: %w", err)
	}
	return nil
}

func (a *Actuator) prepare(r *runtime) (prepared, error) {
	var err error
	if a.Actuate.Client, err = a.Process.Kube.Client(); err != nil {
		return prepared{}, err
	}
	if a.Call.URL != "" {
		a.Call.Logger, a.Call.Meter = r.Logger, r.Meter("notify")
		caller, err := notify.NewCaller(a.Call)
		if err != nil {
			return prepared{}, err
		}
		return prepared{Client: a.Actuate.Client, Run: caller.Run}, nil
	}
	if a.Actuate.Dynamic, err = a.Process.Kube.Dynamic(); err != nil {
		return prepared{}, err
	}
	if a.Actuate.Reloader.On {
		if a.Notify.Alert, err = notify.AlertFrom(os.Getenv); err != nil {
			// As in Reloader, an invalid setting for alerts does not prevent rolling.
			r.Logger.WarnContext(context.Background(), "alerts of reloads are off", "err", err)
		}
	}
	a.Notify.Logger, a.Notify.Meter = r.Logger, r.Meter("notify")
	notifier, err := notify.New(a.Notify)
	if err != nil {
		return prepared{}, err
	}
	a.Actuate.WhileLeading = notifier.Run
	a.Actuate.Identity, a.Actuate.Unfit = os.Getenv("POD_NAME"), a.unfit
	// The account may have no Lease in other namespaces.
	a.Actuate.LeaseNamespace = cmp.Or(os.Getenv("POD_NAMESPACE"), a.Actuate.LeaseNamespace)
	a.Actuate.Logger, a.Actuate.Tracer, a.Actuate.Meter = r.Logger, r.Tracer("actuate"), r.Meter("actuate")
	a.Actuate.Progress = r.Progress("deciding")
	actuator, err := actuate.New(a.Actuate)
	if err != nil {
		return prepared{}, err
	}
	r.Health.AddReadiness("workloads", actuator.Ready)
	return prepared{Client: a.Actuate.Client, Run: actuator.Run}, nil
}
