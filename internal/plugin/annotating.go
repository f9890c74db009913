package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// annotating is a command that annotates what its arguments name.
type annotating struct {
	*annotator

	plugin *Plugin
	cmd    *cobra.Command
	out    io.Writer
	// explains explains a workload, by the command explain.
	explains func(ctx context.Context, o *object) (explained, error)
	// prepared is whether explain is, and unprepared why it cannot be.
	prepared   bool
	unprepared error
}

// annotatingCommand returns a command that annotates, with what its flags have in common.
func (p *Plugin) annotatingCommand(use, short, example string, run func(ctx context.Context, a *annotating, args []string) error) *cobra.Command {
	a := &annotating{annotator: &annotator{}, plugin: p}
	a.explains = a.explain
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

// change is what a command does to each of its objects.
type change struct {
	annotation string
	// value is nil to remove the annotation.
	value *string
	// done says for people what was done.
	done string
	// reason is the one for which a workload waits then. What is said of it is known from done.
	reason string
}

// change annotates an object, and says what was pending before, because afterwards the actuator may have rolled it already, and what keeps the
// workload from rolling afterwards.
func (a *annotating) change(ctx context.Context, o *object, c change) error {
	before := a.explanation(ctx, o)
	if _, err := a.annotate(ctx, o, map[string]*string{c.annotation: c.value}); err != nil {
		return err
	}
	a.say("%s: %s", o, c.done)
	if before == nil {
		return nil
	}
	if len(before.Pending) == 0 {
		fmt.Fprintln(a.out, "  nothing was pending")
	} else {
		fmt.Fprintf(a.out, "  pending: %s\n", strings.Join(before.Pending, ", "))
	}
	if a.dryRun {
		return nil // Nothing else is so than before.
	}
	after := a.explanation(ctx, o)
	if after == nil {
		return nil
	}
	said := []string{c.reason}
	for _, state := range after.States {
		if state.Reason == "" || !slices.Contains(said, state.Reason) {
			fmt.Fprintln(a.out, "  "+strings.ReplaceAll(state.Text, "\n", "\n  "))
		}
		said = append(said, state.Reason)
	}
	return nil
}
