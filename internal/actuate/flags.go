package actuate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/internal/workload"
)

// AddFlags adds the actuator's own flags, without those that it shares with the watcher.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.AddDecisionFlags(flags)
	flags.DurationVar(&o.Settle, "settle", o.Settle,
		"debounce: roll a workload after this long without a further change, at the latest after ten times as long")
	flags.IntVar(&o.MaxRollouts, "max-rollouts", o.MaxRollouts, "maximum `number` of rollouts in progress; 0 means no limit")
	flags.DurationVar(&o.RolloutTimeout, "rollout-timeout", o.RolloutTimeout, "how long a rollout may make no progress before it counts as failed")
	flags.DurationVar(&o.Canary, "canary", o.Canary,
		"roll one workload of a namespace first for each change, and the others once its pods have stayed ready for this long, unless it has "+
			workload.AnnotationBake+"; 0 rolls all at once")
	flags.BoolVar(&o.ForceSync, "force-sync", o.ForceSync, "force ExternalSecrets to sync when a secret that they read in OpenBao or Vault changes")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "elect a leader among replicas, using a Lease")
}

// AddDecisionFlags adds the flags of AddFlags that determine what a change means for a workload, or whether workloads are rolled at all. Kinds,
// Reading and Policy depend on these flags and on Canary alone.
func (o *Options) AddDecisionFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.IgnoreNamespaces, "ignore-namespaces", o.IgnoreNamespaces,
		"`namespaces` to ignore, separated by commas; cannot be combined with --namespaces")
	flags.BoolVar(&o.RollAll, "roll-all", o.RollAll, "also roll workloads without an annotation, for everything that their pod spec references")
	reloader.AddFlag(flags, &o.Reloader)
	flags.StringVar(&o.StoreAccess, "store-access", o.StoreAccess,
		"YAML `file` with the secrets in stores that each namespace may name in keyturn.dev/roll-on; empty allows only those that pods "+
			"are seen to read")
	flags.StringVar(&o.TargetsConfig, "targets-config", o.TargetsConfig,
		"`file`, or folder of files, with kinds of custom resources that are rolled too, in YAML; a CRD may be installed later")
	flags.StringVar((*string)(&o.RollOnCreate), "roll-on-create", string(o.RollOnCreate),
		"`which` workloads roll when a source is created: auto (those whose pods started without it), always (all that want it) or never")
	flags.BoolVar(&o.RollOnDelete, "roll-on-delete", o.RollOnDelete, "when a source is deleted, roll the workloads that can start without it")
	flags.StringVar(&o.Window, "window", o.Window, "`windows` in which workloads may be rolled, unless they have "+workload.AnnotationWindow+
		", in the form "+workload.WindowForm+"; empty means at any time")
	flags.DurationVar(&o.MinInterval, "min-interval", o.MinInterval,
		"shortest time between two rolls of one workload, unless it has "+workload.AnnotationMinInterval+"; 0 means none")
	flags.IntVar(&o.MaxRollsPerHour, "max-rolls-per-hour", o.MaxRollsPerHour,
		"maximum `number` of rolls per hour of one workload, unless it has "+workload.AnnotationMaxRollsPerHour+"; 0 means no limit")
	flags.DurationVar(&o.ReloadInPlace, "reload-in-place", o.ReloadInPlace,
		"ask pods to reload this long after a change instead of replacing them, where "+workload.AnnotationReload+
			" says how and they read it from files: 2m is as long as kubelets take to refresh these; 0 replaces the pods")
	flags.StringSliceVar(&o.WorkloadKinds, "workload-kinds", o.WorkloadKinds,
		"comma-separated `kinds` of workloads that are watched and rolled, beside those of --jobs and --targets-config: "+
			strings.Join(builtInKinds().Names(), ", ")+". The CRD of rollout, of Argo Rollouts, may be installed later")
	flags.BoolVar(&o.DryRun, "dry-run", o.DryRun, "decide and report, but patch nothing")
	flags.StringSliceVar(&o.Jobs, "jobs", o.Jobs,
		"`what` to do with Jobs, separated by commas: "+JobsStart+" one of a CronJob for a change, instead of changing its template for the next "+
			"run; "+JobsRecreate+" those that are to roll, finished ones too: each is deleted and created again under its name")
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
	for i, cluster := range o.StoreClusters() {
		err := events.ValidateCluster(cluster)
		check(err != nil, "--stores-from: %w", err)
		check(err == nil && cluster == o.Cluster, "--stores-from: %q is this cluster, want others", cluster)
		check(strings.HasSuffix(o.StoresFrom[i], "@"), "--stores-from: %q, want a JetStream domain after the @", o.StoresFrom[i])
	}
	problems = append(problems, kube.ValidateIgnored(o.IgnoreNamespaces, o.Namespaces))
	check(o.Settle < 0, "--settle: %s, want 0 or more", o.Settle)
	check(o.MaxRollouts < 0, "--max-rollouts: %d, want 0 (no limit) or more", o.MaxRollouts)
	check(o.MaxRollsPerHour < 0, "--max-rolls-per-hour: %d, want 0 (no limit) or more", o.MaxRollsPerHour)
	check(o.Canary < 0 || o.Canary > workload.MaxBake, "--canary: %s, want 0 (off) to %dh", o.Canary, int(workload.MaxBake.Hours()))
	check(o.ReloadInPlace < 0, "--reload-in-place: %s, want 0 (off) or more", o.ReloadInPlace)
	check(o.MinInterval < 0 || o.MinInterval > workload.MaxInterval,
		"--min-interval: %s, want 0 (none) to %dh", o.MinInterval, int(workload.MaxInterval.Hours()))
	_, kindsErr := o.Kinds()
	problems = append(problems, o.ValidatePolicy(), kindsErr)
	check(o.RolloutTimeout <= 0, "--rollout-timeout: %s, want more than 0", o.RolloutTimeout)
	_, readingErr := o.Reading(nil)
	problems = append(problems, readingErr)
	return errors.Join(problems...)
}

// ValidatePolicy returns an error if a flag selects a policy that does not exist.
func (o *Options) ValidatePolicy() error {
	if !slices.Contains(plan.Creations(), o.RollOnCreate) {
		return fmt.Errorf("--roll-on-create: %q, want one of %q", o.RollOnCreate, plan.Creations())
	}
	return nil
}
