package inspect

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/workload"
)

// readRunners reads the Rollouts that run the pods of a Deployment's template. There are none of another workload, nor if the kind is not installed,
// or not rolled by the actuator. Without permission to list them, the workload gets a problem that says so.
func readRunners(ctx context.Context, options ExplainOptions, w *workload.Workload) ([]*workload.Workload, error) {
	kind := workload.ArgoRollout()
	if w.ID.Kind != "deployment" || options.ignores(kind.Name) {
		return nil, nil
	}
	list, err := kind.Objects(options.Clients, w.ID.Namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		w.Problems = append(w.Problems, fmt.Errorf("no permission to list %s, one of which may run its pods", kind.Resource))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing %s in namespace %s: %w", kind.Resource, w.ID.Namespace, err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("listing %s in namespace %s: %w", kind.Resource, w.ID.Namespace, err)
	}
	var runners []*workload.Workload
	for _, object := range objects {
		if runner, ok := workload.Read(kind, object, options.Reading); ok && runner.Runs == w.Key() {
			runners = append(runners, runner)
		}
	}
	return runners, nil
}

// writeAborted writes which aborted Rollouts keep a workload from being rolled, and what to do about each.
func writeAborted(w *workload.Workload, runners []*workload.Workload, out io.Writer) {
	if len(runners) == 0 && w.Aborted {
		fmt.Fprintf(out, "It was aborted. %s\n\n", liftAbort(w))
	}
	for _, runner := range runners {
		if runner.Aborted {
			fmt.Fprintf(out, "%s, which runs its pods, was aborted. %s\n\n", runner.ID, liftAbort(runner))
		}
	}
}

func liftAbort(rollout *workload.Workload) string {
	return fmt.Sprintf("No change rolls it until someone lifts that: `kubectl argo rollouts retry rollout %s -n %s`, or promote or undo it.",
		rollout.ID.Name, rollout.ID.Namespace)
}
