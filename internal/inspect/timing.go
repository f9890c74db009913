package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// obstacle is what prevents a workload from being rolled now because people have configured it so, in its annotations or those of its namespace.
type obstacle struct {
	// reason is plan.None if there is no obstacle.
	reason plan.Reason
	// said describes the obstacle for people. It also says so if the workload was asked to roll now.
	said string
	// rollsNow says that the workload was asked to roll whatever holds it, and known that the annotations of its namespace could be read.
	rollsNow, known bool
}

// readNamespace reads the annotations of a namespace. It returns false without permission to read them.
func readNamespace(ctx context.Context, options ExplainOptions, name string) (workload.Namespace, bool, error) {
	namespaces := options.Clients.Typed.CoreV1().Namespaces()
	get := func(ctx context.Context, name string) (runtime.Object, error) {
		return namespaces.Get(ctx, name, metav1.GetOptions{})
	}
	ways := reads{listed(namespaces.List), get}
	if len(options.Namespaces) > 0 {
		slices.Reverse(ways) // A Role cannot grant listing namespaces.
	}
	read, err := ways.read(ctx, name)
	switch {
	case apierrors.IsForbidden(err):
		return workload.Namespace{}, false, nil
	case apierrors.IsNotFound(err):
		return workload.Namespace{}, true, nil
	case err != nil:
		return workload.Namespace{}, false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	namespace, ok := read.(*corev1.Namespace)
	if !ok {
		return workload.Namespace{}, false, fmt.Errorf("reading namespace %s: the API server returned something else", name)
	}
	return workload.ReadNamespace(name, namespace.Annotations), true, nil
}

// timing returns what prevents a workload from being rolled now.
func (r *report) timing(w *workload.Workload) obstacle {
	if w.RollsNow() {
		return obstacle{rollsNow: true, said: fmt.Sprintf(
			"It rolls for the next change whatever holds it: %s is set and has not been used.", workload.AnnotationRollNow)}
	}
	gate := plan.GateOf(w, time.Time{}, r.now)
	return obstacle{reason: gate.Reason, said: r.sayGate(gate)}
}

// sayGate describes why a workload may not be rolled now. It returns nothing if it may.
func (r *report) sayGate(gate plan.Gate) string {
	switch gate.Reason {
	case plan.OnHold:
		return fmt.Sprintf("It is on hold: %s (%s). Its changes roll it once %s is removed, or once %s has another value.",
			gate.Said, gate.Reason, events.AnnotationHold, workload.AnnotationRollNow)
	case plan.WindowClosed:
		return r.sayWindow(gate)
	case plan.RolledRecently:
		return fmt.Sprintf("It was rolled recently (%s): its next roll begins at %s at the earliest, or once %s has another value.",
			gate.Reason, r.coming(gate.End), workload.AnnotationRollNow)
	case plan.RolledTooOften:
		return fmt.Sprintf("It was rolled too often: %s (%s). Its next roll begins at %s at the earliest, or once %s has another value. "+
			"Find what changes its sources or undoes its rollouts each time.",
			gate.Said, gate.Reason, r.coming(gate.End), workload.AnnotationRollNow)
	case plan.Pausing:
		return fmt.Sprintf("Its changes are collected (%s): it is rolled for them from %s on, or once %s has another value.",
			gate.Reason, r.coming(gate.End), workload.AnnotationRollNow)
	default:
		return ""
	}
}

// sayWindow describes a gate whose reason is plan.WindowClosed.
func (r *report) sayWindow(gate plan.Gate) string {
	switch {
	case gate.End.IsZero():
		return fmt.Sprintf("It is not rolled: %s (%s). Fix that, or set %s.", gate.Said, gate.Reason, workload.AnnotationRollNow)
	case gate.Soon:
		return fmt.Sprintf(
			"Its window is open: %s. Workloads are rolled one after the other then, and this one from %s on, or once %s has another value.",
			gate.Said, r.coming(gate.End), workload.AnnotationRollNow)
	default:
		return fmt.Sprintf("No window is open: %s (%s). It is rolled from %s on, or once %s has another value.",
			gate.Said, gate.Reason, r.coming(gate.End), workload.AnnotationRollNow)
	}
}
