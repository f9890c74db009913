package plugin

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/inspect"
)

type status struct {
	Installation string    `json:"installation"`
	Programs     []program `json:"programs"`
	// Leader is the actuator that leads. It is nil if none does, or if there is no election.
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
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show whether the programs run, who leads, what waits and what has failed.",
		Example: "  kubectl keyturn status\n  kubectl keyturn status -n shop --since 1h",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, out := status{now: time.Now()}, cmd.OutOrStdout()
			if err := p.readPrograms(cmd, &s); err != nil {
				return err
			}
			if err := p.readStatus(cmd, &s, namespace, since); err != nil {
				// A program that does not run may be the reason.
				if output == inspect.Table || output == inspect.Wide {
					s.writePrograms(out)
				}
				return err
			}
			return s.write(out, output)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&namespace, "namespace", "n", "", "only workloads and changes of this `namespace`; empty means all")
	flags.DurationVar(&since, "since", 24*time.Hour, "how far back to count changes and rollouts; the lists of workloads have what is older, too")
	commands.AddOutput(cmd, &output, "")
	return cmd
}

func (p *Plugin) readPrograms(cmd *cobra.Command, s *status) (err error) {
	if p.installed == nil {
		return nil
	}
	s.Installation, s.unelected, s.DryRun = p.installed.namespace, !p.installed.elects(), p.installed.isDry()
	if s.Programs, err = p.installed.programs(cmd.Context()); err != nil {
		return err
	}
	s.Leader, err = p.installed.leader(cmd.Context(), s.now)
	return err
}

func (p *Plugin) readStatus(cmd *cobra.Command, s *status, namespace string, since time.Duration) error {
	streams, err := p.streams(cmd.Context())
	if err != nil {
		return err
	}
	b, disconnect, err := streams.OpenBus(cmd.Context())
	if err != nil {
		return err
	}
	defer disconnect()
	s.Status, err = inspect.ReadStatus(cmd.Context(), b, namespace, s.now.Add(-since))
	return err
}

func (s *status) write(out io.Writer, format inspect.Format) error {
	if done, err := format.Encode(out, s); done || err != nil {
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

	view := inspect.View{Format: format, Narrow: true}
	err := errors.Join(s.writeStreams(out), s.writeWorkloads(out, view, "WAITING", s.Waiting), s.writeWorkloads(out, view, "FAILED", s.Failed),
		s.writeWorkloads(out, view, "ROLLING", s.Rolling))
	if len(s.Waiting)+len(s.Failed)+len(s.Rolling) == 0 && !s.DryRun { // A dry run does not say what waits.
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
	_ = inspect.View{}.WriteTable(out, rows)
	switch {
	case s.unelected:
		fmt.Fprintln(out, "\nNo election: every actuator acts.")
	case s.Leader == nil:
		fmt.Fprintln(out, "\nNo actuator leads.")
	case s.Leader.Lost:
		fmt.Fprintf(out, "\nNo actuator leads: %s did until %s ago.\n", s.Leader.Pod, s.ago(s.Leader.Renewed))
	default:
		fmt.Fprintf(out, "\n%s leads.\n", s.Leader.Pod)
	}
	if s.DryRun {
		fmt.Fprintln(out, "Dry run: no workload is rolled.")
	}
}

// writeStreams writes how much each stream holds, and whether there are new dead letters.
func (s *status) writeStreams(out io.Writer) error {
	rows := [][]any{{"STREAM", "MESSAGES", "SIZE", "LIMIT"}}
	for _, stream := range s.Streams {
		limit := "-"
		if stream.Limit > 0 {
			limit = mebibytes(stream.Limit)
		}
		rows = append(rows, []any{stream.Stream, stream.Messages, mebibytes(stream.Bytes), limit})
	}
	err := inspect.View{}.WriteTable(out, rows)
	if s.DeadLetters > 0 {
		fmt.Fprintf(out, "\nIn the last %s there were dead letters: see kubectl keyturn dead-letters.\n", s.ago(s.Since))
	}
	return err
}

// statusRows limits each list of workloads, so that the status fits on a screen. It does not apply to the format wide.
const statusRows = 10

// writeWorkloads writes a list of workloads, the newest last.
func (s *status) writeWorkloads(out io.Writer, view inspect.View, title string, list []inspect.WorkloadStatus) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	left := max(len(list)-statusRows, 0)
	if view.Format == inspect.Wide {
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
	err := view.WriteTable(out, rows)
	if left > 0 {
		fmt.Fprintf(out, "and %d before\n", left)
	}
	return err
}

func (s *status) ago(at time.Time) string { return duration.HumanDuration(max(s.now.Sub(at), 0)) }

func mebibytes(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
