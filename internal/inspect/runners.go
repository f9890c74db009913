package inspect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// readRunners reads the workloads whose pods are replaced by a roll of this one: the Rollouts that run the pods of a Deployment's template, and what
// a custom resource is the controller of. A kind that is not installed, or not rolled by the actuator, has none. Without permission to list a kind,
// the workload gets a problem that says so.
func readRunners(ctx context.Context, options ExplainOptions, w *workload.Workload) ([]*workload.Workload, error) {
	var read []*workload.Workload
	for _, kind := range runnerKinds(options, w) {
		list, err := kind.Objects(options.Clients, w.ID.Namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err):
			w.Problems = append(w.Problems, fmt.Errorf("no permission to list %s, one of which may run its pods", kind.Resource))
			continue
		case err != nil:
			return nil, fmt.Errorf("listing %s in namespace %s: %w", kind.Resource, w.ID.Namespace, err)
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("listing %s in namespace %s: %w", kind.Resource, w.ID.Namespace, err)
		}
		for _, object := range objects {
			if runner, ok := workload.Read(kind, object, options.Reading); ok && runner.Key() != w.Key() {
				read = append(read, runner)
			}
		}
	}
	return runnersOf(w, read), nil
}

// runnersOf returns which of the workloads run the pods of one, or are what it is the controller of, with those of their own. The one is none of
// them, so this ends also where owners own each other.
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

// runnerKinds returns the kinds of which some may run the pods of a workload.
func runnerKinds(options ExplainOptions, w *workload.Workload) workload.Kinds {
	rollouts := workload.ArgoRollout()
	switch {
	case options.Reading.Owners.Have(w.ID.Kind):
		return options.Kinds
	case w.ID.Kind == "deployment" && !options.ignores(rollouts.Name):
		return workload.Kinds{rollouts}
	}
	return nil
}

// noteAborted adds which aborted Rollouts keep a workload from being rolled, and what to do about each.
func (r *report) noteAborted(w *workload.Workload, runners []*workload.Workload) {
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
