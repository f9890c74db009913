package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// onHold is the reason in outcomes of workloads that wait for the end of a hold.
const onHold = "on-hold"

// holdable are the kinds that can be on hold, in addition to workloads.
var holdable = []string{"namespace", "secret", "configmap"}

func (p *Plugin) hold() *cobra.Command {
	var reason string
	var overwrite bool
	cmd := p.annotateCommand("hold <kind>/<name>...",
		"Hold the rolls of workloads, of all workloads of a namespace, or for a Secret or ConfigMap.",
		"  kubectl keyturn hold deployment/web --reason \"load test, until Ada ends it\"\n"+
			"  kubectl keyturn hold namespace/shop --dry-run",
		func(ctx context.Context, a *annotator, args []string) error {
			if events.HoldText(reason) == "" {
				return errors.New("--reason: is empty, which holds nothing; want who holds it, and until when")
			}
			return a.each(args, func(o *object) error { return a.hold(ctx, o, reason, overwrite) })
		})
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().StringVar(&reason, "reason", "held with kubectl keyturn", "`text` for people: who holds it, why, and until when")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace the text of an existing hold")
	return cmd
}

// hold puts an object on hold. It returns an error if its kind cannot be on hold, or if it already is for another reason and overwrite is false.
func (a *annotator) hold(ctx context.Context, o *object, reason string, overwrite bool) error {
	if err := a.checkHold(ctx, o); err != nil {
		return err
	}
	before, err := o.hold(ctx)
	if err != nil {
		return err
	}
	text := events.HoldText(reason)
	c := change{annotation: events.AnnotationHold, value: &reason, holds: true, done: "held, until it is released: " + text}
	if before != "" && before != text {
		if !overwrite {
			return fmt.Errorf("%s is on hold already: %s; give --overwrite to replace that", o, before)
		}
		c.done += ", instead of: " + before
	}
	return a.change(ctx, o, c)
}

func (p *Plugin) rollNow() *cobra.Command {
	cmd := p.annotateCommand("roll-now <kind>/<name>...",
		"Roll workloads now for what is pending, whatever hold, window, interval or hourly limit applies.",
		"  kubectl keyturn roll-now deployment/web",
		func(ctx context.Context, a *annotator, args []string) error {
			return a.each(args, func(o *object) error {
				if err := a.checkRolled(ctx, o, "nothing rolls this kind: want one that the actuator rolls"); err != nil {
					return err
				}
				value := time.Now().UTC().Format(time.RFC3339Nano)
				return a.change(ctx, o, change{annotation: workload.AnnotationRollNow, value: &value, done: "asked to roll now"})
			})
		})
	cmd.Args = cobra.MinimumNArgs(1)
	return cmd
}

func (p *Plugin) release() *cobra.Command {
	var all bool
	cmd := p.annotateCommand("release [<kind>/<name>...]",
		"Release what is on hold. What is pending rolls once, at once.",
		"  kubectl keyturn release deployment/web\n"+
			"  kubectl keyturn release --all -n shop",
		func(ctx context.Context, a *annotator, args []string) error {
			if all == (len(args) > 0) {
				return errors.New("want either <kind>/<name>, or --all for all workloads of the namespace")
			}
			if all {
				var err error
				if args, err = a.held(ctx); err != nil {
					return err
				}
			}
			return a.each(args, func(o *object) error {
				return a.change(ctx, o, change{annotation: events.AnnotationHold, done: "not on hold by an annotation of its own"})
			})
		})
	cmd.Flags().BoolVar(&all, "all", false, "all workloads of the namespace that are on hold, and not the namespace itself")
	return cmd
}

// held returns the workloads of the namespace that are on hold, as arguments. It reports kinds that cannot be listed, and returns an error if none
// can be listed.
func (a *annotator) held(ctx context.Context) ([]string, error) {
	kinds, err := a.kinds(ctx)
	if err != nil {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "Custom resources are left out, the settings of the actuator are not known: %v\n", err)
	}
	clients := a.plugin.clients()
	var held []string
	var missing []error
	for _, kind := range kinds {
		var names []string // A failed list may contain some.
		list := pager.New(kind.Objects(clients, a.namespace).List)
		err := list.EachListItem(ctx, metav1.ListOptions{}, func(one runtime.Object) error {
			found, err := meta.Accessor(one)
			if err == nil && events.HoldText(found.GetAnnotations()[events.AnnotationHold]) != "" {
				names = append(names, kind.Resource+"/"+found.GetName())
			}
			return err
		})
		switch {
		case err == nil:
			held = append(held, names...)
		case apierrors.IsNotFound(err):
			missing = append(missing, fmt.Errorf("%s, which the API server does not have", kind.Resource))
		case apierrors.IsForbidden(err):
			missing = append(missing, fmt.Errorf("%s, no permission to %s", kind.Resource, right{"list", kind.Resource, "", a.namespace}))
		default:
			missing = append(missing, fmt.Errorf("%s: %w", kind.Resource, err))
		}
	}
	if len(missing) == len(kinds) {
		return nil, errors.Join(missing...)
	}
	for _, err := range missing {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "Left out: %v\n", err)
	}
	if len(held) == 0 {
		fmt.Fprintf(a.cmd.OutOrStdout(), "No workload is on hold%s.\n", in(a.namespace))
	}
	return held, nil
}

// kinds returns the kinds of workloads that the actuator rolls. If its settings are unknown, it returns the kinds that Keyturn knows, and an error.
func (a *annotator) kinds(ctx context.Context) (workload.Kinds, error) {
	err := a.prepare(ctx)
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

func (a *annotator) checkHold(ctx context.Context, o *object) error {
	if o.group == "" && slices.Contains(holdable, o.kind) {
		return nil
	}
	return a.checkRolled(ctx, o, "a hold of this kind holds nothing: want a namespace, secret or configmap, or what the actuator rolls")
}

// checkRolled returns an error with the given text if the actuator does not roll objects of this kind. If its kinds are unknown, any custom resource
// is accepted.
func (a *annotator) checkRolled(ctx context.Context, o *object, text string) error {
	kinds, err := a.kinds(ctx)
	rolled := slices.ContainsFunc(kinds, func(k workload.Kind) bool {
		group, _, named := strings.Cut(k.APIVersion, "/")
		return named && group == o.group && strings.EqualFold(k.Title, o.kind)
	})
	// The API groups of Kubernetes itself have no dot, or end in .k8s.io.
	custom := strings.Contains(o.group, ".") && !strings.HasSuffix(o.group, ".k8s.io")
	if rolled || err != nil && custom {
		return nil
	}
	return fmt.Errorf("%s: %s: %s", o, text, strings.Join(kinds.Names(), ", "))
}
