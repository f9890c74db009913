package actuate

import (
	"errors"
	"fmt"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

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
