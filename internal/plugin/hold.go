package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// annotating is a command that annotates what its arguments name.
type annotating struct {
	*annotator

	plugin *Plugin
	cmd    *cobra.Command
	out    io.Writer
	// prepared is whether explain is, and unprepared why it cannot be.
	prepared   bool
	unprepared error
}

// annotatingCommand returns a command that annotates, with what its flags have in common.
func (p *Plugin) annotatingCommand(use, short, example string, run func(ctx context.Context, a *annotating, args []string) error) *cobra.Command {
	a := &annotating{annotator: &annotator{}, plugin: p}
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.access.open("kubectl-keyturn/" + p.version); err != nil {
				return err
			}
			if a.namespace == "" {
				a.namespace = p.access.namespace
			}
			found, err := discovery.NewDiscoveryClientForConfig(p.access.config)
			if err != nil {
				return fmt.Errorf("reading the kubeconfig: %w", err)
			}
			cached := memory.NewMemCacheClient(found)
			a.mapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
			a.client, a.cmd, a.out = p.access.dynamic, cmd, cmd.OutOrStdout()
			return run(cmd.Context(), a, args)
		},
	}
	cmd.Flags().StringVarP(&a.namespace, "namespace", "n", "", "`namespace` of the objects; empty means that of the context")
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "have the API server say what would be, and change nothing")
	return cmd
}

func (p *Plugin) hold() *cobra.Command {
	var reason string
	cmd := p.annotatingCommand("hold <kind>/<name>...",
		"Hold the rolls of workloads, of all workloads of a namespace, or for a Secret or ConfigMap.",
		"  kubectl keyturn hold deployment/web --reason \"load test, until Ada ends it\"\n"+
			"  kubectl keyturn hold namespace/shop --dry-run",
		func(ctx context.Context, a *annotating, args []string) error {
			if events.HoldText(reason) == "" {
				return errors.New("--reason: is empty, which holds nothing; want who holds it, and until when")
			}
			return a.each(args, func(o *object) error {
				if _, err := a.annotate(ctx, o, map[string]*string{events.AnnotationHold: &reason}); err != nil {
					return err
				}
				a.say("%s: held, until it is released: %s", o, events.HoldText(reason))
				a.sayPending(a.pending(ctx, o), "pending is %s", "nothing is pending")
				return nil
			})
		})
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().StringVar(&reason, "reason", "held with kubectl keyturn", "`text` for people: who holds it, why, and until when")
	return cmd
}

func (p *Plugin) rollNow() *cobra.Command {
	cmd := p.annotatingCommand("roll-now <kind>/<name>...",
		"Roll workloads now for what is pending, whatever hold, window, interval or hourly limit applies.",
		"  kubectl keyturn roll-now deployment/web",
		func(ctx context.Context, a *annotating, args []string) error {
			return a.each(args, func(o *object) error {
				before := a.pending(ctx, o) // Afterwards the actuator may have rolled it already.
				value := time.Now().UTC().Format(time.RFC3339Nano)
				if _, err := a.annotate(ctx, o, map[string]*string{workload.AnnotationRollNow: &value}); err != nil {
					return err
				}
				a.say("%s: asked to roll now", o)
				a.sayPending(before, "pending was %s", "nothing was pending, so that it rolls for the next change, whatever holds it")
				return nil
			})
		})
	cmd.Args = cobra.MinimumNArgs(1)
	return cmd
}

func (p *Plugin) release() *cobra.Command {
	var all bool
	cmd := p.annotatingCommand("release [<kind>/<name>...]",
		"Release what is on hold. What is pending rolls once, at once.",
		"  kubectl keyturn release deployment/web\n"+
			"  kubectl keyturn release --all -n shop",
		func(ctx context.Context, a *annotating, args []string) error {
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
				before := a.pending(ctx, o)
				if _, err := a.annotate(ctx, o, map[string]*string{events.AnnotationHold: nil}); err != nil {
					return err
				}
				a.say("%s: not on hold by an annotation of its own", o)
				a.sayPending(before, "pending was %s", "nothing was pending")
				return nil
			})
		})
	cmd.Flags().BoolVar(&all, "all", false, "all workloads of the namespace that are on hold, and not the namespace itself")
	return cmd
}

// each calls do for each object, and goes on with the others after one that fails.
func (a *annotating) each(args []string, do func(*object) error) error {
	var failures []error
	for _, argument := range args {
		o, err := a.object(argument)
		if err == nil {
			err = do(o)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// say prints a line.
func (a *annotating) say(format string, about ...any) {
	line := fmt.Sprintf(format, about...)
	if a.dryRun {
		line += " (dry run: nothing is changed)"
	}
	fmt.Fprintln(a.out, line)
}

// pending returns what is pending for a workload, as explain says it; nil if that is not known. It takes more rights than to annotate.
func (a *annotating) pending(ctx context.Context, o *object) []string {
	switch o.kind {
	case "namespace", "secret", "configmap":
		return nil // There may be hundreds of workloads.
	}
	explained, err := a.explain(ctx, o)
	if err != nil {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "What is pending is not known: %v\n", err)
		return nil
	}
	return append([]string{}, explained.Pending...)
}

// sayPending prints a line for what is pending, or for nothing, if that is known.
func (a *annotating) sayPending(pending []string, some, none string) {
	switch {
	case pending == nil:
	case len(pending) == 0:
		fmt.Fprintln(a.out, "  "+none)
	default:
		fmt.Fprintf(a.out, "  "+some+"\n", strings.Join(pending, ", "))
	}
}

// explained is what of an explanation is said.
type explained struct {
	Pending []string `json:"pending"`
}

// explain runs the command explain.
func (a *annotating) explain(ctx context.Context, o *object) (explained, error) {
	var e explained
	cmd, err := a.explaining(ctx)
	if err != nil {
		return e, err
	}
	var out bytes.Buffer
	cmd.SetOut(&out)
	if err := cmd.RunE(cmd, []string{o.String()}); err != nil {
		return e, err
	}
	return e, json.Unmarshal(out.Bytes(), &e)
}

// explaining returns the command explain, with the settings of the installation.
func (a *annotating) explaining(ctx context.Context) (*cobra.Command, error) {
	cmd, _, err := a.cmd.Root().Find([]string{"explain"})
	if err != nil || a.prepared {
		return cmd, errors.Join(err, a.unprepared)
	}
	a.prepared = true
	cmd.InheritedFlags() // joins those of the plugin
	cmd.SetContext(ctx)
	a.unprepared = errors.Join(cmd.Flags().Set("namespace", a.namespace), cmd.Flags().Set("output", "json"))
	if a.unprepared == nil {
		a.unprepared = a.plugin.prepare(cmd, nil) //nolint:contextcheck // it is that of the command
	}
	return cmd, a.unprepared
}

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
