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

// annotating is a command that annotates the objects that its arguments name.
type annotating struct {
	*annotator

	plugin *Plugin
	cmd    *cobra.Command
	out    io.Writer
	// explains explains a workload, using the command explain.
	explains func(ctx context.Context, o *object) (explained, error)
	// prepared says that the command explain has been prepared, and unprepared why that failed, if it did.
	prepared   bool
	unprepared error
	// unreached says that NATS could not be reached. It is not tried again for further objects.
	unreached bool
}

// annotatingCommand returns a command that annotates, with the flags that all of these have.
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
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "let the API server check the change, but change nothing")
	return cmd
}

// each calls do for each object, and continues with the others if one fails.
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

// add prints a line with details.
func (a *annotating) add(text string) { fmt.Fprintln(a.out, "  "+events.Printable(text)) }

// change is what a command does to each of its objects.
type change struct {
	annotation string
	// value is nil to remove the annotation.
	value *string
	// done tells people what was done.
	done string
	// reason is the reason why a workload then waits. States with this reason are not printed, because done has said so.
	reason string
	// holds says that the change prevents a workload from rolling. The workload is then explained only after the change: it
	// might roll while an explanation runs before.
	holds bool
}

// change annotates an object, and says what was pending before, and what prevents the workload from rolling afterwards.
func (a *annotating) change(ctx context.Context, o *object, c change) error {
	var before *explained
	if !c.holds {
		before = a.explanation(ctx, o) // After the change, the actuator may already have rolled it.
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
		return nil // After a dry run, nothing has changed.
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
