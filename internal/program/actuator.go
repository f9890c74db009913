package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/notify"
)

// Actuator is the program that rolls the workloads that depend on a changed source. Its fields are its options.
type Actuator struct {
	Process Options
	Actuate actuate.Options
	Notify  notify.Options
	// Call configures a webhook that is called instead of rolling workloads, if it has a URL. Actuate and Notify are then not used.
	Call notify.CallOptions
	// Embed runs a NATS server in the process, configured by Embedded, instead of connecting to Process.NATS.
	Embed    bool
	Embedded embedded.Options
	// StoresDomain is the JetStream domain of the clusters of Actuate.StoresFrom. If it is empty, their events come another way.
	StoresDomain string

	// server is the embedded server, after its start.
	server *embedded.Server
	// guardInterval is how often the streams are compared with the required ones: once a minute, except in tests.
	guardInterval time.Duration
}

// NewActuator returns an actuator with the defaults.
func NewActuator(version string) *Actuator {
	return &Actuator{
		Process: defaultOptions("actuator", version), Actuate: actuate.DefaultOptions(), guardInterval: time.Minute,
	}
}

// AddCommonFlags adds the flags that the program and all its commands have.
func (a *Actuator) AddCommonFlags(flags *pflag.FlagSet) {
	a.Process.addClusterFlags(flags)
	flags.StringSliceVar(&a.Actuate.Namespaces, "namespaces", nil, "`namespaces` whose workloads to roll, separated by commas; empty means all")
	flags.StringSliceVar(&a.Actuate.StoresFrom, "stores-from", nil,
		"other `clusters` whose watchers watch secret stores for this one, separated by commas")
}

// AddRunFlags adds the flags that only the program itself has.
func (a *Actuator) AddRunFlags(flags *pflag.FlagSet) {
	a.Process.addRunFlags(flags)
	a.Actuate.AddFlags(flags)
	a.Notify.AddFlags(flags)
	a.Call.AddFlags(flags)
	a.addEmbeddedFlags(flags)
}

// Run runs the actuator until ctx ends or a step fails. An error about the options has a line for each problem. Log lines go to log.
func (a *Actuator) Run(ctx context.Context, log io.Writer, build Build) error {
	a.Actuate.Cluster = a.Process.Cluster
	if a.Embed {
		// The address and the certificates are for commands that run in the pod. The program itself connects within the process.
		nats := &a.Process.NATS
		nats.URL, nats.CAFile, nats.CertFile, nats.KeyFile = "", "", "", ""
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

// refuseTokens returns an error if the environment has a token of a secret store: only the watcher reads stores, and a variable that both programs
// have comes from a ConfigMap.
func refuseTokens(lookup func(string) (string, bool)) error {
	for _, name := range []string{"BAO_TOKEN", "VAULT_TOKEN"} {
		if _, set := lookup(name); set {
			return fmt.Errorf("%s is set, but the actuator reads no secret store; set it only for the watcher, in the Secret "+
				"keyturn-watcher-env", name)
		}
	}
	return nil
}

// validateCall returns an error if the options of the webhook are invalid, or are combined with others that cannot apply then.
func (a *Actuator) validateCall() error {
	if a.Call.URL != "" && (a.Actuate.DryRun || a.Actuate.ForceSync || a.Notify.ConfigFile != "") {
		return errors.New("--webhook-url: cannot be combined with --dry-run, --force-sync or --notify-config: with a webhook nothing is rolled")
	}
	if a.Call.URL != "" && (a.Actuate.RollOnCreate == "always" || a.Actuate.RollOnDelete) {
		return errors.New("--webhook-url: cannot be combined with --roll-on-create=always or --roll-on-delete: " +
			"it is called only when content changes")
	}
	return a.Call.Validate()
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
	if a.Actuate.ForceSync || a.Actuate.ArgoRollouts || a.Actuate.TargetsConfig != "" {
		if a.Actuate.Dynamic, err = a.Process.Kube.Dynamic(); err != nil {
			return prepared{}, err
		}
	}
	if a.Actuate.Reloader {
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
	a.Actuate.Logger, a.Actuate.Tracer, a.Actuate.Meter = r.Logger, r.Tracer("actuate"), r.Meter("actuate")
	a.Actuate.Progress = r.Progress("deciding")
	actuator, err := actuate.New(a.Actuate)
	if err != nil {
		return prepared{}, err
	}
	r.Health.AddReadiness("workloads", actuator.Ready)
	return prepared{Client: a.Actuate.Client, Run: actuator.Run}, nil
}
