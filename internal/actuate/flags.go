package actuate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/internal/workload"
)

// AddFlags adds the flags of the first group, except those that both programs have.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.AddDecisionFlags(flags)
	flags.DurationVar(&o.Settle, "settle", o.Settle, "debounce: how long a workload must have no further change before it is rolled")
	flags.DurationVar(&o.SettleMax, "settle-max", o.SettleMax, "longest debounce, counted from the first change")
	flags.IntVar(&o.MaxRollouts, "max-rollouts", o.MaxRollouts, "maximum `number` of rollouts in progress; 0 means no limit")
	flags.IntVar(&o.MaxRolloutsPerNamespace, "max-rollouts-per-namespace", o.MaxRolloutsPerNamespace,
		"maximum `number` of rollouts in progress in a namespace; 0 means only its share of --max-rollouts")
	flags.DurationVar(&o.RolloutTimeout, "rollout-timeout", o.RolloutTimeout, "how long a rollout may make no progress before it counts as failed")
	flags.StringVar(&o.ReloaderStrategy, "reloader-strategy", o.ReloaderStrategy,
		"with --reloader: `what` a rollout also writes to the pod template, as in Reloader: a marker ("+strategyMarker+
			") or variables ("+strategyVariables+")")
	flags.BoolVar(&o.Canary, "canary", o.Canary,
		"roll one workload of a namespace first for each change, and the others once its pods have stayed ready for --bake")
	flags.DurationVar(&o.Bake, "bake", o.Bake,
		"with --canary: how long the pods of the first workload must stay ready, unless it has "+workload.AnnotationBake+
			"; 0 means that the others follow as soon as the pods are ready")
	flags.IntVar(&o.PatchWorkers, "patch-workers", o.PatchWorkers,
		"maximum `number` of workloads that are patched at a time, and of further ones whose pods are asked to reload")
	flags.BoolVar(&o.ForceSync, "force-sync", o.ForceSync, "force ExternalSecrets to sync when a secret that they read in OpenBao or Vault changes")
	flags.IntVar(&o.MaxSyncs, "max-syncs", o.MaxSyncs, "maximum `number` of ExternalSecrets that wait to be synced at a time")
	flags.BoolVar(&o.ReloaderMetrics, "reloader-metrics", o.ReloaderMetrics,
		"also serve metrics under the names of Reloader, for existing dashboards")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "elect a leader among replicas, using a Lease")
	flags.StringVar(&o.LeaseNamespace, "lease-namespace", o.LeaseNamespace, "`namespace` of the Lease")
}

// AddDecisionFlags adds those flags of AddFlags that determine what a change means to a workload, or whether workloads are rolled at all. Kinds,
// Reading and Policy depend on no others, except for ReloaderStrategy and Bake: these say what a roll writes, and how long others wait.
func (o *Options) AddDecisionFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.IgnoreNamespaces, "ignore-namespaces", o.IgnoreNamespaces,
		"`namespaces` to ignore, separated by commas; cannot be combined with --namespaces")
	flags.BoolVar(&o.RollAll, "roll-all", o.RollAll, "also roll workloads without an annotation, for everything that their pod spec references")
	flags.BoolVar(&o.Reloader, "reloader", o.Reloader, "behave like Stakater's Reloader where the two differ, for a migration")
	reloader.AddFlag(flags, &o.ReloaderAnnotations)
	flags.StringVar(&o.StoreAccess, "store-access", o.StoreAccess,
		"YAML `file` that says which secrets in stores namespaces may name in keyturn.dev/roll-on; empty allows only those that pods "+
			"are seen to read")
	flags.StringVar(&o.TargetsConfig, "targets-config", o.TargetsConfig,
		"`file`, or folder of files, with kinds of custom resources that are rolled too, in YAML; a CRD may be installed later")
	flags.StringVar((*string)(&o.RollOnCreate), "roll-on-create", string(o.RollOnCreate),
		"`which` workloads roll when a source is created: auto, those whose pods started without it; always, all that want it; never, none")
	flags.BoolVar(&o.RollOnDelete, "roll-on-delete", o.RollOnDelete, "roll workloads that can start without a source when it is deleted")
	flags.StringVar(&o.Window, "window", o.Window, "`windows` in which workloads may be rolled, unless they have "+workload.AnnotationWindow+
		", in the form "+workload.WindowForm+"; empty means at any time")
	flags.DurationVar(&o.MinInterval, "min-interval", o.MinInterval,
		"shortest time between two rolls of one workload, unless it has "+workload.AnnotationMinInterval+"; 0 means none")
	flags.IntVar(&o.MaxRollsPerHour, "max-rolls-per-hour", o.MaxRollsPerHour,
		"maximum `number` of rolls per hour of one workload, unless it has "+workload.AnnotationMaxRollsPerHour+"; 0 means no limit")
	flags.BoolVar(&o.InPlace, "reload-in-place", o.InPlace,
		"ask pods to reload after a change instead of replacing them, where "+workload.AnnotationReload+" says how and they read it from files")
	flags.DurationVar(&o.ReloadDelay, "reload-delay", o.ReloadDelay,
		"how long to wait after a change before asking pods to reload, so that every kubelet has refreshed their files")
	flags.StringSliceVar(&o.IgnoreWorkloadKinds, "ignore-workload-kinds", o.IgnoreWorkloadKinds,
		"`kinds` of workloads that are neither watched nor rolled, such as cronjobs, separated by commas")
	flags.BoolVar(&o.DryRun, "dry-run", o.DryRun, "decide and report, but patch nothing")
	flags.BoolVar(&o.ArgoRollouts, "argo-rollouts", o.ArgoRollouts, "also roll Rollouts of Argo Rollouts; its CRD may be installed later")
	flags.BoolVar(&o.StartCronJobs, "start-cronjobs", o.StartCronJobs,
		"start a Job of a CronJob for a change, instead of changing its template for the next run")
	flags.BoolVar(&o.RecreateJobs, "recreate-jobs", o.RecreateJobs,
		"also roll Jobs, finished ones too: each is deleted and created again under its name")
}

// Validate returns every problem of the options, a line each.
func (o *Options) Validate() error {
	var problems []error
	check := func(isWrong bool, format string, args ...any) {
		if isWrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	err := events.ValidateCluster(o.Cluster)
	check(err != nil, "--cluster: %w", err)
	for _, cluster := range o.StoresFrom {
		err := events.ValidateCluster(cluster)
		check(err != nil, "--stores-from: %w", err)
		check(err == nil && cluster == o.Cluster, "--stores-from: %q is this cluster, want others", cluster)
	}
	problems = append(problems, kube.ValidateIgnored(o.IgnoreNamespaces, o.Namespaces))
	check(o.Settle < 0, "--settle: %s, want 0 or more", o.Settle)
	check(o.SettleMax < o.Settle, "--settle-max: %s, want --settle (%s) or more", o.SettleMax, o.Settle)
	check(o.MaxRollouts < 0, "--max-rollouts: %d, want 0 (no limit) or more", o.MaxRollouts)
	check(o.MaxRolloutsPerNamespace < 0, "--max-rollouts-per-namespace: %d, want 0 (no limit of its own) or more", o.MaxRolloutsPerNamespace)
	check(o.MaxRollsPerHour < 0, "--max-rolls-per-hour: %d, want 0 (no limit) or more", o.MaxRollsPerHour)
	check(o.Bake < 0 || o.Bake > workload.MaxBake,
		"--bake: %s, want 0 (as soon as the pods are ready) to %dh", o.Bake, int(workload.MaxBake.Hours()))
	check(o.ReloadDelay < 0, "--reload-delay: %s, want 0 or more", o.ReloadDelay)
	check(o.MinInterval < 0 || o.MinInterval > workload.MaxInterval,
		"--min-interval: %s, want 0 (none) to %dh", o.MinInterval, int(workload.MaxInterval.Hours()))
	_, kindsErr := o.Kinds()
	problems = append(problems, o.ValidatePolicy(), kindsErr)
	check(o.RolloutTimeout <= 0, "--rollout-timeout: %s, want more than 0", o.RolloutTimeout)
	check(o.PatchWorkers < 1, "--patch-workers: %d, want 1 or more", o.PatchWorkers)
	check(o.MaxSyncs < 1, "--max-syncs: %d, want 1 or more", o.MaxSyncs)
	isKnown := o.ReloaderStrategy == strategyMarker || o.ReloaderStrategy == strategyVariables
	check(!isKnown, "--reloader-strategy: %q, want %s or %s", o.ReloaderStrategy, strategyMarker, strategyVariables)
	check(o.ReloaderStrategy == strategyVariables && !o.Reloader, "--reloader-strategy: %q, want it with --reloader only", o.ReloaderStrategy)
	_, readingErr := o.Reading(nil)
	problems = append(problems, readingErr)
	check(o.LeaderElect && o.LeaseNamespace == "", "--lease-namespace: empty, want the namespace of the Lease or --leader-elect=false")
	return errors.Join(problems...)
}

// ValidatePolicy returns an error if a flag chooses a policy that does not exist.
func (o *Options) ValidatePolicy() error {
	if !slices.Contains(plan.Creations(), o.RollOnCreate) {
		return fmt.Errorf("--roll-on-create: %q, want one of %q", o.RollOnCreate, plan.Creations())
	}
	return nil
}
