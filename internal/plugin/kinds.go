package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/workload"
)

// holdable are the kinds, besides workloads, that can be on hold.
var holdable = []string{"namespace", "secret", "configmap"}

// kinds returns the kinds of workloads that the actuator rolls. If its settings are not known, it returns the kinds that
// Keyturn knows, and an error that says why.
func (a *annotating) kinds(ctx context.Context) (workload.Kinds, error) {
	_, err := a.explaining(ctx)
	if err == nil {
		err = a.plugin.unsettled
	}
	if err == nil {
		var kinds workload.Kinds
		if kinds, err = a.plugin.settings.Kinds(); err == nil {
			return kinds, nil
		}
	}
	return append(workload.BuiltIn(), workload.ArgoRollout(), workload.Job()), err
}

// checkHold returns an error if objects of this kind cannot be on hold.
func (a *annotating) checkHold(ctx context.Context, o *object) error {
	if o.group == "" && slices.Contains(holdable, o.kind) {
		return nil
	}
	if kinds, rolled := a.rolls(ctx, o); !rolled {
		return fmt.Errorf("%s: a hold of this kind holds nothing: want a namespace, secret or configmap, or what the actuator rolls: %s", o, kinds)
	}
	return nil
}

// checkRoll returns an error if objects of this kind are not rolled.
func (a *annotating) checkRoll(ctx context.Context, o *object) error {
	if kinds, rolled := a.rolls(ctx, o); !rolled {
		return fmt.Errorf("%s: nothing rolls this kind: want one that the actuator rolls: %s", o, kinds)
	}
	return nil
}

// rolls reports whether the actuator rolls objects of this kind, and returns the names of the kinds that it rolls. If these are not known, any
// custom resource counts.
func (a *annotating) rolls(ctx context.Context, o *object) (string, bool) {
	kinds, err := a.kinds(ctx)
	rolled := slices.ContainsFunc(kinds, func(k workload.Kind) bool {
		group, _, named := strings.Cut(k.APIVersion, "/")
		return named && group == o.group && strings.EqualFold(k.Title, o.kind)
	})
	// The API groups of Kubernetes itself have no dot, or end in .k8s.io.
	custom := strings.Contains(o.group, ".") && !strings.HasSuffix(o.group, ".k8s.io")
	return strings.Join(kinds.Names(), ", "), rolled || err != nil && custom
}
