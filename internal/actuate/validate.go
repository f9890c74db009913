package actuate

import (
	"errors"
	"fmt"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// validateLimits returns what is wrong with the limits of rollouts and of their times.
func (o *Options) validateLimits() []error {
	var problems []error
	if o.MaxRollouts < 0 {
		problems = append(problems, fmt.Errorf("--max-rollouts: %d, want 0 (no limit) or more", o.MaxRollouts))
	}
	if o.MaxRolloutsPerNamespace < 0 {
		problems = append(problems, fmt.Errorf("--max-rollouts-per-namespace: %d, want 0 (no limit of its own) or more", o.MaxRolloutsPerNamespace))
	}
	if o.MaxRollsPerHour < 0 {
		problems = append(problems, fmt.Errorf("--max-rolls-per-hour: %d, want 0 (no limit) or more", o.MaxRollsPerHour))
	}
	if o.Bake < 0 || o.Bake > workload.MaxBake {
		problems = append(problems, fmt.Errorf("--bake: %s, want 0 (as soon as the pods are ready) to %dh", o.Bake, int(workload.MaxBake.Hours())))
	}
	if o.ReloadDelay < 0 {
		problems = append(problems, fmt.Errorf("--reload-delay: %s, want 0 or more", o.ReloadDelay))
	}
	if o.MinInterval < 0 || o.MinInterval > workload.MaxInterval {
		problems = append(problems, fmt.Errorf("--min-interval: %s, want 0 (none) to %dh", o.MinInterval, int(workload.MaxInterval.Hours())))
	}
	return problems
}

// Validate returns every problem of the options, a line each.
func (o *Options) Validate() error {
	var problems []error
	if err := events.ValidateCluster(o.Cluster); err != nil {
		problems = append(problems, fmt.Errorf("--cluster: %w", err))
	}
	for _, cluster := range o.StoresFrom {
		if err := events.ValidateCluster(cluster); err != nil {
			problems = append(problems, fmt.Errorf("--stores-from: %w", err))
		} else if cluster == o.Cluster {
			problems = append(problems, fmt.Errorf("--stores-from: %q is this cluster, want others", cluster))
		}
	}
	if err := kube.ValidateIgnored(o.IgnoreNamespaces, o.Namespaces); err != nil {
		problems = append(problems, err)
	}
	if o.Settle < 0 {
		problems = append(problems, fmt.Errorf("--settle: %s, want 0 or more", o.Settle))
	}
	if o.SettleMax < o.Settle {
		problems = append(problems, fmt.Errorf("--settle-max: %s, want --settle (%s) or more", o.SettleMax, o.Settle))
	}
	problems = append(problems, o.validateLimits()...)
	if err := o.ValidatePolicy(); err != nil {
		problems = append(problems, err)
	}
	if _, err := o.Kinds(); err != nil {
		problems = append(problems, err)
	}
	if o.RolloutTimeout <= 0 {
		problems = append(problems, fmt.Errorf("--rollout-timeout: %s, want more than 0", o.RolloutTimeout))
	}
	if o.PatchWorkers < 1 {
		problems = append(problems, fmt.Errorf("--patch-workers: %d, want 1 or more", o.PatchWorkers))
	}
	if o.MaxSyncs < 1 {
		problems = append(problems, fmt.Errorf("--max-syncs: %d, want 1 or more", o.MaxSyncs))
	}
	switch {
	case o.ReloaderStrategy != strategyMarker && o.ReloaderStrategy != strategyVariables:
		problems = append(problems, fmt.Errorf("--reloader-strategy: %q, want %s or %s", o.ReloaderStrategy, strategyMarker, strategyVariables))
	case o.ReloaderStrategy == strategyVariables && !o.Reloader:
		problems = append(problems, fmt.Errorf("--reloader-strategy: %q, want it with --reloader only", o.ReloaderStrategy))
	}
	if _, err := o.Reading(nil); err != nil {
		problems = append(problems, err)
	}
	if o.LeaderElect && o.LeaseNamespace == "" {
		problems = append(problems, errors.New("--lease-namespace: empty, want the namespace of the Lease or --leader-elect=false"))
	}
	return errors.Join(problems...)
}
