package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/kube"
)

type status struct {
	Installation string    `json:"installation"`
	Programs     []program `json:"programs"`
	// Leader is the leading actuator. It is nil if none leads, or if there is no election.
	Leader *leader `json:"leader,omitempty"`
	// DryRun says that the actuators roll nothing.
	DryRun bool `json:"dryRun,omitempty"`
	inspect.Status

	// unelected says that there is no election, and all actuators act.
	unelected bool
	now       time.Time
}

func (p *Plugin) statusCommand() *cobra.Command {
	var namespace string
	var output inspect.Format
	var since time.Duration
	var watch bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show whether the programs run, who leads, what waits and what has failed.",
		Example: "  kubectl keyturn status --watch\n  kubectl keyturn status -n shop --since 1h",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if !watch {
				return p.showStatus(cmd.Context(), output, namespace, since, out)
			}
			for {
				if output == inspect.Table || output == inspect.Wide {
					fmt.Fprint(p.terminal.screen, clearScreen)
				}
				if err := p.showStatus(cmd.Context(), output, namespace, since, out); err != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), events.Printable(err.Error())) // The error may be gone at the next update.
				}
				if !kube.Sleep(cmd.Context(), checkInterval) {
					return nil
				}
			}
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&namespace, "namespace", "n", "", "only workloads and changes of this `namespace`; empty means all")
	flags.DurationVar(&since, "since", 24*time.Hour, "how far back to count changes and rollouts; the lists of workloads have what is older, too")
	flags.BoolVarP(&watch, "watch", "w", false, "show it again every two seconds, until you press Ctrl-C")
	addOutput(cmd, &output, "")
	return cmd
}

// clearScreen clears a terminal and moves to its top.
const clearScreen = "\x1b[H\x1b[2J"

func (p *Plugin) showStatus(ctx context.Context, output inspect.Format, namespace string, since time.Duration, out io.Writer) error {
	s := status{now: time.Now()}
	if err := p.readPrograms(ctx, &s); err != nil {
		return err
	}
	if err := p.readStatus(ctx, &s, namespace, since); err != nil {
		// A program that is not running may be the reason.
		if output == inspect.Table || output == inspect.Wide {
			s.writePrograms(out)
		}
		return err
	}
	return s.write(out, output)
}

func (p *Plugin) readPrograms(ctx context.Context, s *status) (err error) {
	if p.installed == nil {
		return nil
	}
	s.Installation, s.unelected, s.DryRun = p.installed.namespace, !p.installed.elects(), p.installed.isDry()
	if s.Programs, err = p.installed.programs(ctx); err != nil {
		return err
	}
	s.Leader, err = p.installed.leader(ctx, s.now)
	return err
}

func (p *Plugin) readStatus(ctx context.Context, s *status, namespace string, since time.Duration) error {
	b, err := p.openBus(ctx)
	if err != nil {
		return err
	}
	s.Status, err = inspect.ReadStatus(ctx, b, namespace, s.now.Add(-since))
	return err
}

func (s *status) write(out io.Writer, format inspect.Format) error {
	if done, err := format.Encode(out, s); done {
		return err
	}
	where := "Cluster " + s.Cluster
	if s.Installation != "" {
		where += ", installation in namespace " + s.Installation
	}
	fmt.Fprintf(out, "%s\n\n", where)
	s.writePrograms(out)
	last := "none"
	if !s.LastChange.IsZero() {
		last = s.ago(s.LastChange) + " ago"
	}
	fmt.Fprintf(out, "Last change: %s. In the last %s: %d changes, %d rollouts completed, %d failed.\n\n",
		last, s.ago(s.Since), s.Changes, s.Completed, s.Failures)

	err := errors.Join(s.writeStreams(out), s.writeWorkloads(out, format, "WAITING", s.Waiting), s.writeWorkloads(out, format, "FAILED", s.Failed),
		s.writeWorkloads(out, format, "ROLLING", s.Rolling))
	if len(s.Waiting)+len(s.Failed)+len(s.Rolling) == 0 && !s.DryRun { // A dry run has no information about waits.
		fmt.Fprintln(out, "\nNothing waits, is being rolled, or has failed.")
	}
	return err
}

func (s *status) writePrograms(out io.Writer) {
	if len(s.Programs) == 0 {
		return
	}
	rows := [][]any{{"PROGRAM", "READY", "VERSION"}}
	for _, p := range s.Programs {
		rows = append(rows, []any{p.Name, fmt.Sprintf("%d/%d", p.Ready, p.Replicas), p.Version})
	}
	_ = inspect.Wide.WriteTable(out, rows)
	switch {
	case s.unelected:
		fmt.Fprintln(out, "\nNo election: every actuator acts.")
	case s.Leader == nil:
		fmt.Fprintln(out, "\nNo actuator leads.")
	case s.Leader.Lost:
		fmt.Fprintf(out, "\nNo actuator leads: %s did until %s ago.\n", events.Printable(s.Leader.Pod), s.ago(s.Leader.Renewed))
	default:
		fmt.Fprintf(out, "\n%s leads.\n", events.Printable(s.Leader.Pod))
	}
	if s.DryRun {
		fmt.Fprintln(out, "Dry run: no workload is rolled.")
	}
}

// writeStreams writes the usage of each stream, and whether there are new dead letters.
func (s *status) writeStreams(out io.Writer) error {
	rows := [][]any{{"STREAM", "MESSAGES", "SIZE", "LIMIT"}}
	for _, stream := range s.Streams {
		limit := "-"
		if stream.Limit > 0 {
			limit = mebibytes(stream.Limit)
		}
		rows = append(rows, []any{stream.Stream, stream.Messages, mebibytes(stream.Bytes), limit})
	}
	err := inspect.Wide.WriteTable(out, rows)
	if s.DeadLetters > 0 {
		fmt.Fprintf(out, "\nIn the last %s there were dead letters: see kubectl keyturn dead-letters.\n", s.ago(s.Since))
	}
	return err
}

// statusRows limits each list of workloads, so that the status fits on a screen. The format wide has no limit.
const statusRows = 10

// writeWorkloads writes a list of workloads, the newest last.
func (s *status) writeWorkloads(out io.Writer, format inspect.Format, title string, list []inspect.WorkloadStatus) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	left := max(len(list)-statusRows, 0)
	if format == inspect.Wide {
		left = 0
	}
	rows := [][]any{{title, "NAMESPACE", "FOR", "REASON"}}
	for _, w := range list[left:] {
		reason := w.Reason
		if w.Message != "" {
			reason += ": " + w.Message
		}
		rows = append(rows, []any{w.Workload, w.Namespace, s.ago(w.Time), reason})
	}
	err := format.WriteTable(out, rows)
	if left > 0 {
		fmt.Fprintf(out, "and %d before\n", left)
	}
	return err
}

func (s *status) ago(at time.Time) string { return duration.HumanDuration(max(s.now.Sub(at), 0)) }

func mebibytes(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
