package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/events"
)

type change struct {
	annotation string
	// value is nil to remove the annotation.
	value *string
	done  string
	// reason is the reason why a workload then waits. States with this reason are not printed, because done has said so.
	reason string
	// holds says that the change prevents a workload from rolling. The workload is then explained only after the change: it
	// might roll while an explanation runs before.
	holds bool
}

// change annotates an object, and prints what was pending before, and what prevents the workload from rolling afterwards.
func (a *annotator) change(ctx context.Context, o *object, c change) error {
	var before *explained
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
	if c.holds {
		before = after
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
	said := []string{c.reason}
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

type explained struct {
	Pending []string `json:"pending"`
	States  []struct {
		Reason string `json:"reason"`
		Text   string `json:"text"`
	} `json:"states"`
}

// explanation returns the explanation of a workload. It returns nil if the object is not a workload, or if the explanation fails,
// which needs more permissions than annotating.
func (a *annotator) explanation(ctx context.Context, o *object) *explained {
	if a.unreached || slices.Contains(holdable, o.kind) {
		return nil // What else can be on hold may concern hundreds of workloads.
	}
	found, err := a.explains(ctx, o)
	if err != nil {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "What is pending is not known: %v\n", err)
		var answer apierrors.APIStatus
		a.unreached = !errors.As(err, &answer) // A response of the API server is about this object only.
		return nil
	}
	return &found
}

func (a *annotator) explain(ctx context.Context, o *object) (explained, error) {
	var e explained
	cmd, err := a.explainCommand(ctx)
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

// explainCommand returns the command explain, with the settings of the installation.
func (a *annotator) explainCommand(ctx context.Context) (*cobra.Command, error) {
	cmd, _, err := a.cmd.Root().Find([]string{"explain"})
	if err != nil || a.prepared {
		return cmd, errors.Join(err, a.unprepared)
	}
	a.prepared = true
	cmd.InheritedFlags() // adds those of the plugin
	cmd.SetContext(ctx)
	a.unprepared = errors.Join(cmd.Flags().Set("namespace", a.namespace), cmd.Flags().Set("output", "json"), commands.Environment(cmd.Flags()))
	if a.unprepared == nil {
		a.unprepared = a.plugin.prepare(cmd, nil) //nolint:contextcheck // it uses the context of the command
	}
	return cmd, a.unprepared
}
