package actuate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/inplace"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/internal/telemetry"
	"github.com/keyturn/keyturn/internal/workload"
)

// Options configure an Actuator. The fields of the first group are flags of the actuator.
type Options struct {
	// Cluster is the cluster whose events to act on, a DNS-1123 label. Required.
	Cluster string
	// Namespaces are the namespaces whose workloads are rolled. Empty means all.
	Namespaces []string
	// IgnoreNamespaces are namespaces to ignore when Namespaces is empty. The API server filters them out. Empty means none.
	IgnoreNamespaces []string
	// StoresFrom are other clusters whose watchers watch secret stores for this one. Only their events about secrets in stores count. A cluster may
	// be followed by "@" and the JetStream domain from which an embedded server copies its events. Default none.
	StoresFrom []string
	// Settle is the debounce: how long a workload must have no further change before it is rolled. Zero rolls at once. Default 1s.
	Settle time.Duration
	// MaxRollouts is how many rollouts may be in progress, of which each namespace has its share. Zero means no limit. Default 50.
	MaxRollouts int
	// RolloutTimeout is how long a rollout may make no progress before it counts as failed. Default 15m.
	RolloutTimeout time.Duration
	// RollAll also rolls workloads without an annotation, for everything that their pod spec references. Default false.
	RollAll bool
	// Reloader selects the behaviors of Reloader to imitate. Its webhook is not used here. Default none.
	Reloader reloader.Settings
	// TargetsConfig is the file or folder with custom resources that are rolled too, see workload.TargetConfig. Default none.
	TargetsConfig string
	// StoreAccess is the file with the secrets in stores that each namespace may name, see workload.StoreAccess. Default none.
	StoreAccess string
	// RollOnCreate says which workloads roll when a source is created. Default plan.CreateAuto.
	RollOnCreate plan.Creation
	// RollOnDelete rolls workloads when a source is deleted that they can start without. Default false.
	RollOnDelete bool
	// Window is when workloads without a window of their own may be rolled, see workload.ParseWindows. Empty, the default, means at any time.
	Window string
	// MinInterval is the shortest time between two rolls of a workload whose annotations do not set another one. Zero means none. Default 0.
	MinInterval time.Duration
	// MaxRollsPerHour is how often a workload may be rolled within an hour unless its annotations say so. Zero means no limit. Default 30.
	MaxRollsPerHour int
	// ReloadInPlace is how long after a change pods are asked to reload instead of being replaced, if the workload says how, see
	// workload.AnnotationReload. It should be the longest time that a kubelet takes to refresh files. Zero, the default, replaces the pods.
	ReloadInPlace time.Duration
	// Canary rolls one workload of a namespace first for each change, and the others after its pods have stayed ready for this long. Zero, the
	// default, rolls all at once.
	Canary time.Duration
	// WorkloadKinds are the kinds, singular or plural, whose workloads are watched and rolled, in addition to those of Jobs and TargetsConfig.
	// Default the kinds of Kubernetes itself, without Rollouts of Argo Rollouts.
	WorkloadKinds []string
	// DryRun decides and reports, but patches nothing. Default false.
	DryRun bool
	// ForceSync syncs the ExternalSecrets that read a changed secret in a store. It requires permission to list cluster-scoped kinds. Default false.
	ForceSync bool
	// Jobs lists what to do for Jobs and CronJobs: JobsStart, JobsRecreate or both. Default neither.
	Jobs []string
	// LeaderElect elects a leader among replicas, using a Lease. Default true.
	LeaderElect bool

	// PatchWorkers is how many workloads are patched at a time, at most half of them in one namespace. With ReloadInPlace, as many more may be asked
	// to reload. Default 32.
	PatchWorkers int
	// PrivateStream says that each replica has its own stream, which lacks the outcomes of other leaders. Default false.
	PrivateStream bool
	// LeaseNamespace is the namespace of the Lease, which is that of the pod. Default keyturn-system.
	LeaseNamespace string
	// LeaseName is the name of the Lease, to which a dry run adds "-dry-run". Default keyturn-actuator, which deploy/base/rbac.yaml allows.
	LeaseName string
	// Identity is the holder's name in the Lease, unique among running actuators. Default the host name and a random number.
	Identity string
	// Client is the client for workloads.
	Client kubernetes.Interface
	// Dynamic is the client for custom resources. Required with ForceSync, Rollouts and TargetsConfig.
	Dynamic dynamic.Interface
	// DialPod connects to pods. Nil means over the network.
	DialPod inplace.Dial
	// RevertDelays are the delays between each revert of a rollout and the next roll of the workload. Default 1m, 5m and 15m.
	RevertDelays [plan.RevertRetries]time.Duration
	Logger       *slog.Logger
	Tracer       trace.Tracer
	Meter        metric.Meter
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Progress is the progress of the loop, for the liveness probe. Nil means none.
	Progress *telemetry.Progress
	// WhileLeading runs while this actuator leads, and must return soon after its context is done. Nil means nothing.
	WhileLeading func(ctx context.Context, b *bus.Bus)
	// Unfit returns why this actuator must not lead now, nil if it may, which is the default. An unfit leader gives up the Lease.
	Unfit func() error
}

// The values of Jobs.
const (
	// JobsStart starts a Job from a CronJob for a change, instead of changing the CronJob's template.
	JobsStart = "start"
	// JobsRecreate also rolls Jobs, by deleting them and creating them again.
	JobsRecreate = "recreate"
)

// maxSyncs is how many ExternalSecrets may be syncing at a time. By default, External Secrets Operator syncs them one at a time.
const maxSyncs = 5

// patchWorkers is the default of PatchWorkers. A namespace gets at most half of them, which is enough to keep an API server busy with the workloads
// of one Secret. With the other half, a slow admission webhook in one namespace does not delay the others.
const patchWorkers = 32

// DefaultOptions returns the defaults, for all namespaces.
func DefaultOptions() Options {
	return Options{
		Settle: time.Second, MaxRollouts: 50, RolloutTimeout: 15 * time.Minute,
		MaxRollsPerHour: 30, PatchWorkers: patchWorkers,
		RollOnCreate: plan.CreateAuto, WorkloadKinds: workload.BuiltIn().Names(),
		LeaderElect: true, LeaseNamespace: "keyturn-system", LeaseName: "keyturn-actuator", Now: time.Now,
		RevertDelays: [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute},
		Unfit:        func() error { return nil },
	}
}

// settleMax returns the longest debounce, counted from the first change.
func (o *Options) settleMax() time.Duration { return 10 * o.Settle }

// StoreClusters returns the clusters of StoresFrom without the domains.
func (o *Options) StoreClusters() []string {
	var clusters []string
	for _, from := range o.StoresFrom {
		cluster, _, _ := strings.Cut(from, "@")
		clusters = append(clusters, cluster)
	}
	return clusters
}

func (o *Options) clients() workload.Clients {
	return workload.Clients{Typed: o.Client, Dynamic: o.Dynamic, Unrecorded: o.Reloader.On}
}

// Kinds returns the kinds of workloads that are rolled. An error names the flag.
func (o *Options) Kinds() (workload.Kinds, error) {
	for _, what := range o.Jobs {
		if what != JobsStart && what != JobsRecreate {
			return nil, fmt.Errorf("--jobs: %q, want %s, %s or both", what, JobsStart, JobsRecreate)
		}
	}
	targets, err := workload.ReadTargets(o.TargetsConfig)
	if err != nil {
		return nil, err
	}
	kinds, err := builtInKinds().Only(o.WorkloadKinds)
	if err != nil {
		return nil, fmt.Errorf("--workload-kinds: %w", err)
	}
	if slices.Contains(o.Jobs, JobsStart) {
		kinds = kinds.With(workload.StartedCronJob())
	}
	if slices.Contains(o.Jobs, JobsRecreate) {
		kinds = append(kinds, workload.Job())
	}
	return append(kinds, targets...), nil
}

// builtInKinds returns the kinds that WorkloadKinds may have.
func builtInKinds() workload.Kinds { return append(workload.BuiltIn(), workload.ArgoRollout()) }

// Reading returns how workloads are read, given the result of Kinds. An error has a line for each problem.
func (o *Options) Reading(kinds workload.Kinds) (workload.Reading, error) {
	keys, keysErr := reloader.Parse(o.Reloader.Annotations)
	stores, storesErr := workload.ReadStoreAccess(o.StoreAccess)
	windows, windowErr := workload.Windows{}, error(nil)
	if o.Window != "" {
		if windows, windowErr = workload.ParseWindows(o.Window); windowErr != nil {
			windowErr = fmt.Errorf("--window: %w", windowErr)
		}
	}
	return workload.Reading{
		All: o.RollAll, Reloader: o.Reloader.On, Variables: o.Reloader.Strategy == reloader.StrategyVariables,
		Stores: stores, Keys: keys, Window: windows,
		MinInterval: o.MinInterval, MaxRollsPerHour: o.MaxRollsPerHour, Bake: o.Canary, InPlace: o.ReloadInPlace > 0,
		Owners: kinds.Owners(), Unwatched: kinds.Unwatched(),
	}, errors.Join(o.Reloader.Validate(), keysErr, storesErr, windowErr)
}

// Policy returns the policy that the flags select.
func (o *Options) Policy() plan.Policy {
	return plan.Policy{Create: o.RollOnCreate, Delete: o.RollOnDelete}
}
