package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/events"
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
	// unreached says that NATS could not be reached. It is not tried for each of many objects.
	unreached bool
}

// annotatingCommand returns a command that annotates, with what its flags have in common.
func (p *Plugin) annotatingCommand(use, short, example string, run func(ctx context.Context, a *annotating, args []string) error) *cobra.Command {
	a := &annotating{annotator: &annotator{}, plugin: p}
	a.explains = a.explain
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := p.access.open(p.version, nil)
			if err != nil {
				return err
			}
			if a.namespace == "" {
				a.namespace = p.access.namespace
			}
			if a.mapper, err = p.access.mapper(); err != nil {
				return err
			}
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
	fmt.Fprintln(a.out, events.Printable(line))
}

// add prints a line that says more.
func (a *annotating) add(text string) { fmt.Fprintln(a.out, "  "+events.Printable(text)) }

// change is what a command does to each of its objects.
type change struct {
	annotation string
	// value is nil to remove the annotation.
	value *string
	// done says for people what was done.
	done string
	// reason is the one for which a workload waits then. What is said of it is known from done.
	reason string
	// holds says that it keeps a workload from rolling. Nothing is asked before: the workload may roll meanwhile.
	holds bool
}

// change annotates an object, and says what was pending before and what keeps the workload from rolling afterwards.
func (a *annotating) change(ctx context.Context, o *object, c change) error {
	var before *explained
	if !c.holds {
		before = a.explanation(ctx, o) // Afterwards the actuator may have rolled it already.
	}
	if _, err := a.annotate(ctx, o, map[string]*string{c.annotation: c.value}); err != nil {
		return err
	}
	a.say("%s: %s", o, c.done)
	after := before
	if c.holds || before != nil && !a.dryRun {
		after = a.explanation(ctx, o)
	}
	if c.holds {
		before = after
	}
	if before == nil {
		return nil
	}
	if len(before.Pending) == 0 {
		a.add("nothing was pending")
	} else {
		a.add("pending: " + strings.Join(before.Pending, ", "))
	}
	if after == nil || a.dryRun {
		return nil // Of a dry run, nothing is so as it would be.
	}
	said := []string{c.reason}
	for _, state := range after.States {
		if state.Reason == "" || !slices.Contains(said, state.Reason) {
			for line := range strings.SplitSeq(state.Text, "\n") {
				a.add(line)
			}
		}
		said = append(said, state.Reason)
	}
	return nil
}
