package plugin

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// held returns the workloads of the namespace that are on hold, as arguments. It reports kinds that it leaves out because they cannot be listed,
// and returns an error if none can be listed.
func (a *annotating) held(ctx context.Context) ([]string, error) {
	kinds, err := a.kinds(ctx)
	if err != nil {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "Custom resources are left out, the settings of the actuator are not known: %v\n", err)
	}
	var held []string
	var missing []error
	for _, kind := range kinds {
		found, err := a.heldOf(ctx, kind)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		held = append(held, found...)
	}
	if len(missing) == len(kinds) {
		return nil, errors.Join(missing...)
	}
	for _, err := range missing {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "Left out: %v\n", err)
	}
	if len(held) == 0 {
		fmt.Fprintf(a.out, "No workload is on hold%s.\n", in(a.namespace))
	}
	return held, nil
}

// heldOf returns the workloads of a kind that are on hold.
func (a *annotating) heldOf(ctx context.Context, kind workload.Kind) ([]string, error) {
	clients := workload.Clients{Typed: a.plugin.access.typed, Dynamic: a.plugin.access.dynamic}
	list, err := kind.Objects(clients, a.namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s, which the API server does not have", kind.Resource)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%s, no permission to %s", kind.Resource, right{"list", kind.Resource, a.namespace})
	case err != nil:
		return nil, fmt.Errorf("%s: %w", kind.Resource, err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind.Resource, err)
	}
	var held []string
	for _, one := range objects {
		if found, err := meta.Accessor(one); err == nil && events.HoldText(found.GetAnnotations()[events.AnnotationHold]) != "" {
			held = append(held, kind.Resource+"/"+found.GetName())
		}
	}
	return held, nil
}
