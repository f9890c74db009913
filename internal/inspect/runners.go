package inspect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// readRunners reads the workloads whose pods are replaced by a roll of w: the Rollouts that run the pods of a Deployment's template, and the
// workloads that a custom resource controls. It omits kinds that are not installed or that the actuator does not roll. If permission to list a kind
// is missing, w gets a problem about it.
func readRunners(ctx context.Context, options ExplainOptions, w *workload.Workload) ([]*workload.Workload, error) {
	var kinds workload.Kinds
	switch rollouts := workload.ArgoRollout(); {
	case w.ID.Resource != "": // Its kind comes from configuration.
		kinds = options.Kinds
	case w.ID.Kind == "deployment" && !options.ignores(rollouts.Name):
		kinds = workload.Kinds{rollouts}
	}
	var read []*workload.Workload
	for _, kind := range kinds {
		list := pager.New(kind.Objects(options.Clients, w.ID.Namespace).List)
		err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			if runner, ok := workload.Read(kind, object, options.Reading); ok && runner.Key() != w.Key() {
				read = append(read, runner)
			}
			return nil
		})
		switch {
		case err == nil, apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			w.Problems = append(w.Problems, fmt.Errorf("no permission to list %s, one of which may run its pods", kind.Resource))
		default:
			return nil, fmt.Errorf("listing %s in namespace %s: %w", kind.Resource, w.ID.Namespace, err)
		}
	}
	return runnersOf(w, read), nil
}

// runnersOf returns the workloads that run the pods of w or are controlled by it, each joined with its own runners. The recursion ends even if owners
// own each other, because read does not contain the first w.
func runnersOf(w *workload.Workload, read []*workload.Workload) []*workload.Workload {
	var runners []*workload.Workload
	for _, runner := range read {
		if runner.Runs != w.Key() {
			continue
		}
		if own := runnersOf(runner, read); len(own) > 0 {
			runner = runner.RunBy(own...)
		}
		runners = append(runners, runner)
	}
	return runners
}

// noteAborted adds the aborted Rollouts that prevent a workload from being rolled, each with a remedy.
func (r *Report) noteAborted(w *workload.Workload, runners []*workload.Workload) {
	if len(runners) == 0 && w.Aborted {
		r.note("It was aborted (%s). %s", plan.Aborted, liftAbort(w))
	}
	for _, runner := range runners {
		if runner.Aborted {
			r.note("%s, which runs its pods, was aborted (%s). %s", runner.ID, plan.Aborted, liftAbort(runner))
		}
	}
}

func liftAbort(rollout *workload.Workload) string {
	return fmt.Sprintf("No change rolls it until someone lifts that: `kubectl argo rollouts retry rollout %s -n %s`, or promote or undo it.",
		rollout.ID.Name, rollout.ID.Namespace)
}
