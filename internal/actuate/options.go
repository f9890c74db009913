package actuate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	// StoresFrom are other clusters whose watchers watch secret stores for this one. Only their events about secrets in stores count. Default none.
	StoresFrom []string
	// Settle is the debounce: how long a workload must have no further change before it is rolled. Zero rolls at once. Default 1s.
	Settle time.Duration
	// SettleMax bounds the debounce, counted from the first change. Default 10s.
	SettleMax time.Duration
	// MaxRollouts is how many rollouts may be in progress, of which each namespace has its share. Zero means no limit. Default 50.
	MaxRollouts int
	// MaxRolloutsPerNamespace is how many rollouts may be in progress in one namespace. Zero means only its share of MaxRollouts. Default 0.
	MaxRolloutsPerNamespace int
	// RolloutTimeout is how long a rollout may make no progress before it counts as failed. Default 15m.
	RolloutTimeout time.Duration
	// RollAll also rolls workloads without an annotation, for everything that their pod spec references. Default false.
	RollAll bool
	// Reloader makes Keyturn behave like Reloader where it would otherwise do better. Default false.
	Reloader bool
	// ReloaderAnnotations replaces keys of Reloader's annotations, by the names of its flags: see reloader.Parse. Default none.
	ReloaderAnnotations map[string]string
	// ReloaderStrategy is what a roll writes to the pod template for Reloader, in addition to Keyturn's annotations: Reloader's marker, with
	// "annotations", or its environment variables, with "env-vars". It is ignored without Reloader. Default "annotations".
	ReloaderStrategy string
	// TargetsConfig is the file, or the folder of files, with custom resources that are rolled too, see workload.TargetConfig. Default none.
	TargetsConfig string
	// StoreAccess is the file that says which namespaces may name which secrets in stores, see workload.StoreAccess. Default none may.
	StoreAccess string
	// RollOnCreate says which workloads roll when a source is created. Default plan.CreateAuto.
	RollOnCreate plan.Creation
	// RollOnDelete rolls workloads when a source is deleted that their pods can start without. Default false.
	RollOnDelete bool
	// Window says when workloads may be rolled whose annotations do not say so, see workload.ParseWindows. Empty, the default, means at any time.
	Window string
	// MinInterval is the shortest time between two rolls of a workload whose annotations do not set another one. Zero means none. Default 0.
	MinInterval time.Duration
	// MaxRollsPerHour is how often a workload may be rolled within an hour unless its annotations say so. Zero means no limit. Default 30.
	MaxRollsPerHour int
	// InPlace asks pods to reload after a change instead of replacing them, if the workload says how, see workload.AnnotationReload. Default false.
	InPlace bool
	// ReloadDelay is how long after a change pods are asked to reload: the longest time that a kubelet takes to refresh their files. Default 2m.
	ReloadDelay time.Duration
	// Canary rolls one workload of a namespace first for each change, and the others after its pods have stayed ready for Bake. Default false.
	Canary bool
	// Bake is how long the pods of the first workload must stay ready, with Canary. Default 5m.
	Bake time.Duration
	// IgnoreWorkloadKinds are kinds, in the singular or the plural, whose workloads are neither watched nor rolled. Default none.
	IgnoreWorkloadKinds []string
	// DryRun decides and reports, but patches nothing. Default false.
	DryRun bool
	// PatchWorkers is how many workloads are patched at a time. With InPlace, as many further ones may be asked to reload. Default 16.
	PatchWorkers int
	// ForceSync makes External Secrets sync what reads a changed secret in a store. It needs to list the cluster-scoped kinds of it. Default false.
	ForceSync bool
	// MaxSyncs is how many ExternalSecrets may wait at a time for External Secrets Operator to sync them. Default 5.
	MaxSyncs int
	// ArgoRollouts also rolls Rollouts of Argo Rollouts. Default false.
	ArgoRollouts bool
	// StartCronJobs starts a Job from a CronJob for a change, instead of changing the CronJob's template. Default false.
	StartCronJobs bool
	// RecreateJobs also rolls Jobs, by deleting them and creating them again. Default false.
	RecreateJobs bool
	// ReloaderMetrics also serves metrics under the names of Reloader. Default false.
	ReloaderMetrics bool
	// LeaderElect elects a leader among replicas, using a Lease. Default true.
	LeaderElect bool
	// LeaseNamespace is the namespace of the Lease. Default keyturn-system.
	LeaseNamespace string

	// PrivateStream says that each replica has its own stream, so that outcomes of another leader are not on it. Default false.
	PrivateStream bool
	// LeaseName is the name of the Lease, to which a dry run adds "-dry-run". Default keyturn-actuator, which deploy/base/rbac.yaml allows.
	LeaseName string
	// Identity is the holder's name in the Lease, unique among running actuators. Default is the host name and a random number.
	Identity string
	// Client is the client for workloads.
	Client kubernetes.Interface
	// Dynamic is the client for custom resources. Required with ForceSync, ArgoRollouts and TargetsConfig.
	Dynamic dynamic.Interface
	// DialPod connects to pods. Nil means over the network.
	DialPod inplace.Dial
	// RevertDelays say how long after each revert of a rollout the workload is rolled again. Default 1m, 5m and 15m.
	RevertDelays [plan.RevertRetries]time.Duration
	Logger       *slog.Logger
	Tracer       trace.Tracer
	Meter        metric.Meter
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Progress is the progress of the loop, for the liveness probe. Nil means none.
	Progress *telemetry.Progress
	// WhileLeading runs whenever this actuator leads, and must return soon after its context is done. Nil means nothing.
	WhileLeading func(ctx context.Context, b *bus.Bus)
	// Unfit returns why this actuator must not lead now, nil if it may. A leader that becomes unfit gives up the Lease. Default nil always.
	Unfit func() error
}

// The values of ReloaderStrategy, which are those of Reloader's flag.
const (
	strategyMarker    = "annotations"
	strategyVariables = "env-vars"
)

// DefaultOptions returns the defaults, for all namespaces.
func DefaultOptions() Options {
	return Options{
		Settle: time.Second, SettleMax: 10 * time.Second, MaxRollouts: 50, RolloutTimeout: 15 * time.Minute,
		MaxRollsPerHour: 30, Bake: 5 * time.Minute, PatchWorkers: 16, ReloadDelay: 2 * time.Minute,
		RollOnCreate: plan.CreateAuto, ReloaderStrategy: strategyMarker,
		MaxSyncs: 5, LeaderElect: true, LeaseNamespace: "keyturn-system", LeaseName: "keyturn-actuator", Now: time.Now,
		RevertDelays: [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute},
		Unfit:        func() error { return nil },
	}
}

func (o *Options) clients() workload.Clients {
	return workload.Clients{Typed: o.Client, Dynamic: o.Dynamic, Unrecorded: o.Reloader}
}

// Kinds returns the kinds of workloads that are rolled. An error begins with the flag.
func (o *Options) Kinds() (workload.Kinds, error) {
	targets, err := workload.ReadTargets(o.TargetsConfig)
	if err != nil {
		return nil, err
	}
	all, ignored := append(workload.BuiltIn(), workload.ArgoRollout()), o.IgnoreWorkloadKinds
	if !o.ArgoRollouts {
		ignored = append(slices.Clone(ignored), workload.ArgoRollout().Name)
	}
	if o.RecreateJobs {
		all = append(all, workload.Job())
	}
	if o.StartCronJobs {
		all = all.With(workload.StartedCronJob())
	}
	kinds, err := append(all, targets...).Without(ignored)
	if err != nil {
		return nil, fmt.Errorf("--ignore-workload-kinds: %w", err)
	}
	return kinds, nil
}

// Reading returns how workloads are read. Pass it the result of Kinds. Its error has a line for each problem.
func (o *Options) Reading(kinds workload.Kinds) (workload.Reading, error) {
	keys, keysErr := reloader.Parse(o.ReloaderAnnotations)
	stores, storesErr := workload.ReadStoreAccess(o.StoreAccess)
	windows, windowErr := workload.Windows{}, error(nil)
	if o.Window != "" {
		if windows, windowErr = workload.ParseWindows(o.Window); windowErr != nil {
			windowErr = fmt.Errorf("--window: %w", windowErr)
		}
	}
	return workload.Reading{
		All: o.RollAll, Reloader: o.Reloader, Variables: o.ReloaderStrategy == strategyVariables, Stores: stores, Keys: keys, Window: windows,
		MinInterval: o.MinInterval, MaxRollsPerHour: o.MaxRollsPerHour, Bake: o.Bake, InPlace: o.InPlace,
		Owners: kinds.Owners(), Unwatched: kinds.Unwatched(),
	}, errors.Join(keysErr, storesErr, windowErr)
}

// Policy returns the policy that the flags choose.
func (o *Options) Policy() plan.Policy {
	return plan.Policy{Create: o.RollOnCreate, Delete: o.RollOnDelete}
}
