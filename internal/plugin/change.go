package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
)

type change struct {
	annotation string
	// value is nil to remove the annotation.
	value *string
	done  string
	// holds says that the change prevents a workload from rolling. The workload is then explained only after the change, because it might roll during
	// an earlier explanation.
	holds bool
}

// change annotates an object, and prints which changes were pending before, and what prevents the workload from rolling afterwards.
func (a *annotator) change(ctx context.Context, o *object, c change) error {
	var before *inspect.Report
	if !c.holds {
		before = a.explanation(ctx, o) // After the change, the actuator may already have rolled it.
	}
	if err := a.annotate(ctx, o, c.annotation, c.value); err != nil {
		return err
	}
	done := fmt.Sprintf("%s: %s", o, c.done)
	if a.dryRun {
		done += " (dry run: nothing is changed)"
	}
	a.printLine(done)
	after := before
	if c.holds || before != nil && !a.dryRun {
		after = a.explanation(ctx, o)
	}
	var said []string
	if c.holds {
		before, said = after, []string{onHold} // c.done mentions the hold.
	}
	if before == nil {
		return nil
	}
	if len(before.Pending) == 0 {
		a.printLine("  nothing was pending")
	} else {
		a.printLine("  pending: " + strings.Join(before.Pending, ", "))
	}
	if after == nil || a.dryRun {
		return nil // After a dry run, nothing has changed.
	}
	for _, state := range after.States {
		if state.Reason == "" || !slices.Contains(said, state.Reason) {
			for line := range strings.SplitSeq(state.Text, "\n") {
				a.printLine("  " + line)
			}
		}
		said = append(said, state.Reason)
	}
	return nil
}

func (a *annotator) printLine(line string) { fmt.Fprintln(a.cmd.OutOrStdout(), events.Printable(line)) }

// explanation returns the explanation of a workload. It returns nil if the object is not a workload, or if the explanation fails, which takes more
// permissions than annotating.
func (a *annotator) explanation(ctx context.Context, o *object) *inspect.Report {
	if a.unreached || slices.Contains(holdable, o.kind) {
		return nil // A hold of another object may concern hundreds of workloads.
	}
	found, err := a.explains(ctx, o)
	if err != nil {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "What is pending is not known: %v\n", err)
		var answer apierrors.APIStatus
		a.unreached = !errors.As(err, &answer) // A response of the API server is only about this object.
		return nil
	}
	return found
}

func (a *annotator) explain(ctx context.Context, o *object) (*inspect.Report, error) {
	if err := a.prepare(ctx); err != nil {
		return nil, err
	}
	return a.plugin.explain(ctx, o.String(), a.namespace)
}

// prepare reads the settings of the installation, once.
func (a *annotator) prepare(ctx context.Context) error {
	if a.prepared {
		return a.unprepared
	}
	a.prepared, a.unprepared = true, a.plugin.settle(ctx, a.cmd.ErrOrStderr())
	return a.unprepared
}
