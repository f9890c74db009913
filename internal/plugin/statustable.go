package plugin

import (
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/keyturn/keyturn/internal/inspect"
)

// statusRows limits each list of workloads, so that the status fits on a screen. It does not apply to the format wide.
const statusRows = 10

// writePrograms writes the state of each program, and who leads.
func (s *status) writePrograms(out io.Writer) {
	if len(s.Programs) == 0 {
		return
	}
	_ = inspect.View{}.WriteTable(out, func(row func(...any)) {
		row("PROGRAM", "READY", "VERSION")
		for _, p := range s.Programs {
			row(p.Name, fmt.Sprintf("%d/%d", p.Ready, p.Replicas), p.Version)
		}
	})
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

func (s *status) writeTable(out io.Writer, view inspect.View) error {
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

	err := errors.Join(s.writeStreams(out), s.writeWorkloads(out, view, "WAITING", s.Waiting), s.writeWorkloads(out, view, "FAILED", s.Failed),
		s.writeWorkloads(out, view, "ROLLING", s.Rolling))
	if len(s.Waiting)+len(s.Failed)+len(s.Rolling) == 0 && !s.DryRun { // A dry run does not say what waits.
		fmt.Fprintln(out, "\nNothing waits, is being rolled, or has failed.")
	}
	return err
}

// writeStreams writes how much each stream holds, and whether there are new dead letters.
func (s *status) writeStreams(out io.Writer) error {
	err := inspect.View{}.WriteTable(out, func(row func(...any)) {
		row("STREAM", "MESSAGES", "SIZE", "LIMIT")
		for _, stream := range s.Streams {
			limit := "-"
			if stream.Limit > 0 {
				limit = mebibytes(stream.Limit)
			}
			row(stream.Stream, stream.Messages, mebibytes(stream.Bytes), limit)
		}
	})
	if s.DeadLetters > 0 {
		fmt.Fprintf(out, "\nIn the last %s there were dead letters: see kubectl keyturn dead-letters.\n", s.ago(s.Since))
	}
	return err
}

// writeWorkloads writes a list of workloads, the newest last.
func (s *status) writeWorkloads(out io.Writer, view inspect.View, title string, list []inspect.StandingWorkload) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	left := max(len(list)-statusRows, 0)
	if view.Format == inspect.Wide {
		left = 0
	}
	err := view.WriteTable(out, func(row func(...any)) {
		row(title, "NAMESPACE", "FOR", "REASON")
		for _, w := range list[left:] {
			reason := w.Reason
			if w.Message != "" {
				reason += ": " + w.Message
			}
			row(w.Workload, w.Namespace, s.ago(w.Time), reason)
		}
	})
	if left > 0 {
		fmt.Fprintf(out, "and %d before\n", left)
	}
	return err
}

func (s *status) ago(at time.Time) string { return duration.HumanDuration(max(s.now.Sub(at), 0)) }

func mebibytes(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
