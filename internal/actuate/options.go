package actuate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/health"
)

// Options are what an Actuator is made of. The fields of the first group are flags of cmd/actuator.
type Options struct {
	// Cluster is the name of the cluster whose events are acted on. A DNS-1123 label; it has no default.
	Cluster string
	// Namespaces are the namespaces whose workloads are rolled. Empty: all of them.
	Namespaces []string
	// StoresFrom are other clusters whose watchers watch secret stores for this one: their events about secrets in stores are
	// acted on too, and no others of theirs. Empty: none.
	StoresFrom []string
	// Settle is how long a workload must have been without a further change before it is rolled. Zero: not at all.
	// Default one second.
	Settle time.Duration
	// SettleMax is how long a workload waits at most, from the first change. Default ten seconds.
	SettleMax time.Duration
	// MaxRollouts is how many rollouts are in progress at most. Zero: as many as there are. Default 50.
	MaxRollouts int
	// RolloutTimeout is after how long a rollout that is not complete has failed. Default 15 minutes.
	RolloutTimeout time.Duration
	// RollAll rolls workloads that say nothing for whatever their pod spec references.
	RollAll bool
	// DryRun decides and says so, and writes nothing to any workload.
	DryRun bool
	// PatchWorkers is how many patches are under way at most. Default 16.
	PatchWorkers int
	// ForceSync has the ExternalSecrets that read a secret in a store synced when it changes. It needs to see the kinds of
	// External Secrets Operator that have no namespace also where Namespaces are given. Default false.
	ForceSync bool
	// MaxSyncs is how many ExternalSecrets are asked to sync, and are not synced yet, at most. Default 5.
	MaxSyncs int
	// ReloaderMetrics measures by the names of Reloader too. Default false.
	ReloaderMetrics bool
	// LeaderElect has one of several actuators act, by the Lease keyturn-actuator. Default true.
	LeaderElect bool
	// LeaseNamespace is the namespace of the Lease. Default keyturn-system.
	LeaseNamespace string
	// Identity is what the Lease calls this actuator. No other that runs may have it: one that finds its own name in the
	// Lease takes it at once, and does not wait for it to expire. cmd/actuator takes it from POD_NAME, which a container
	// keeps when it is restarted and no two running pods share. Default: the name of the host and a random number.
	Identity string

	// Client talks to the API server.
	Client kubernetes.Interface
	// Dynamic talks to the API server about ExternalSecrets and their stores. Only with ForceSync it is required.
	Dynamic dynamic.Interface
	// SyncTimeout is how long an ExternalSecret that was asked to sync is waited for. Default five minutes.
	SyncTimeout time.Duration
	// Logger, Tracer and Meter are what the actuator tells about itself with.
	Logger *slog.Logger
	Tracer trace.Tracer
	Meter  metric.Meter
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Progress is the loop's, for the liveness probe. Nil means none.
	Progress *health.Progress
	// WhileLeading runs beside the deciding whenever this actuator leads, and returns soon after its context is done: another
	// leads only then. Default: nothing does.
	WhileLeading func(ctx context.Context, bus *events.Bus)
}

// DefaultOptions are the options of an actuator for all namespaces.
func DefaultOptions() Options {
	return Options{
		Settle: time.Second, SettleMax: 10 * time.Second, MaxRollouts: 50, RolloutTimeout: 15 * time.Minute,
		PatchWorkers: 16, MaxSyncs: 5, SyncTimeout: 5 * time.Minute, LeaderElect: true, LeaseNamespace: "keyturn-system", Now: time.Now,
	}
}

// AddFlags binds the options of the first group to flags, but for those that both programs have.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.Settle, "settle", o.Settle, "how long a workload must be without a further change before it is rolled")
	flags.DurationVar(&o.SettleMax, "settle-max", o.SettleMax, "how long a workload waits at most, from the first change")
	flags.IntVar(&o.MaxRollouts, "max-rollouts", o.MaxRollouts, "`number` of rollouts that are in progress at most; 0 is without limit")
	flags.DurationVar(&o.RolloutTimeout, "rollout-timeout", o.RolloutTimeout, "after how long a rollout that is not complete has failed")
	flags.BoolVar(&o.RollAll, "roll-all", o.RollAll, "roll the workloads that have no annotation for whatever their pod spec references")
	flags.BoolVar(&o.DryRun, "dry-run", o.DryRun, "decide and say so, and write nothing to any workload")
	flags.IntVar(&o.PatchWorkers, "patch-workers", o.PatchWorkers, "`number` of patches that are under way at most")
	flags.BoolVar(&o.ForceSync, "force-sync", o.ForceSync, "have ExternalSecrets synced when what they read in OpenBao or Vault changes")
	flags.IntVar(&o.MaxSyncs, "max-syncs", o.MaxSyncs, "`number` of ExternalSecrets that are asked to sync, and are not synced yet, at most")
	flags.BoolVar(&o.ReloaderMetrics, "reloader-metrics", o.ReloaderMetrics, "serve metrics by the names of Reloader too, for dashboards that were made for it")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "have one of several actuators act, by a Lease")
	flags.StringVar(&o.LeaseNamespace, "lease-namespace", o.LeaseNamespace, "`namespace` of the Lease")
}

// Validate reports everything that is wrong with the options, a line each.
func (o *Options) Validate() error {
	problems := []error{events.ValidateCluster(o.Cluster)}
	for _, cluster := range o.StoresFrom {
		if err := events.ValidateCluster(cluster); err != nil {
			problems = append(problems, fmt.Errorf("--stores-from: %w", err))
		} else if cluster == o.Cluster {
			problems = append(problems, fmt.Errorf("--stores-from: %q is this cluster, whose events are acted on anyway; want others", cluster))
		}
	}
	if o.Settle < 0 {
		problems = append(problems, fmt.Errorf("--settle: %s is negative, want 0 or more", o.Settle))
	}
	if o.SettleMax < o.Settle {
		problems = append(problems, fmt.Errorf("--settle-max: %s is less than settle (%s), want as much or more", o.SettleMax, o.Settle))
	}
	if o.MaxRollouts < 0 {
		problems = append(problems, fmt.Errorf("--max-rollouts: %d is negative, want 0 (no limit) or more", o.MaxRollouts))
	}
	if o.RolloutTimeout <= 0 {
		problems = append(problems, fmt.Errorf("--rollout-timeout: %s is too short, want more than 0", o.RolloutTimeout))
	}
	if o.PatchWorkers < 1 {
		problems = append(problems, fmt.Errorf("--patch-workers: %d is too few, want 1 or more", o.PatchWorkers))
	}
	if o.MaxSyncs < 1 {
		problems = append(problems, fmt.Errorf("--max-syncs: %d is too few, want 1 or more", o.MaxSyncs))
	}
	if o.LeaderElect && o.LeaseNamespace == "" {
		problems = append(problems, errors.New("--lease-namespace: is empty, want the namespace of the Lease, or --leader-elect=false"))
	}
	return errors.Join(problems...)
}
