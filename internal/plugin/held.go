package plugin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// held returns the workloads of the namespace that are on hold, as arguments.
func (a *annotating) held(ctx context.Context) ([]string, error) {
	kinds := append(workload.BuiltIn(), workload.ArgoRollout(), workload.Job())
	if _, err := a.explaining(ctx); err != nil {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "Custom resources are left out, the settings of the actuator are not known: %v\n", err)
	} else if all, err := a.plugin.settings.Kinds(); err == nil {
		for _, kind := range all {
			if _, known := kinds.Named(kind.Name); !known {
				kinds = append(kinds, kind)
			}
		}
	}
	var held []string
	clients := workload.Clients{Typed: a.plugin.access.typed, Dynamic: a.plugin.access.dynamic}
	for _, kind := range kinds {
		list, err := kind.Objects(clients, a.namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue // not installed
		case err != nil:
			return nil, right{"list", kind.Resource, a.namespace}.explain(err)
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, one := range objects {
			if found, err := meta.Accessor(one); err == nil && events.HoldText(found.GetAnnotations()[events.AnnotationHold]) != "" {
				held = append(held, kind.Resource+"/"+found.GetName())
			}
		}
	}
	if len(held) == 0 {
		fmt.Fprintf(a.out, "No workload is on hold%s.\n", in(a.namespace))
	}
	return held, nil
}
