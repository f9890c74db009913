package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
)

// These limit a page, which names its omissions.
const (
	maxEvents    = 20_000
	maxRotations = 50
	maxRows      = 200
	maxOthers    = 100
)

// timelineCommand returns the command that draws rotations as a page of HTML. A rotation is a change of a source with all its effects, on one time
// axis, by workload and cluster.
func (p *Plugin) timelineCommand() *cobra.Command {
	var options inspect.HistoryOptions
	var file string
	cmd := p.ofHistory(&options, func(ctx context.Context, history *inspect.History, reader *bus.Reader, out io.Writer) error {
		t := timeline{options: options, now: time.Now()}
		if w, err := inspect.WorkloadNamed(options.Workload); err == nil {
			t.options.Workload = w.String()
		}
		if err := history.Each(ctx, reader, t.add); err != nil {
			return err
		}
		var content bytes.Buffer
		if err := t.write(&content); err != nil {
			return err
		}
		if file == "" {
			_, err := content.WriteTo(out)
			return err
		}
		if err := os.WriteFile(file, content.Bytes(), 0o600); err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		return nil
	})
	cmd.Use, cmd.Short = "timeline", "Draw the rotations of the history as a page of HTML."
	cmd.Example = "  kubectl keyturn timeline --since 1h --file rotations.html\n" +
		"  kubectl keyturn timeline -n shop --verb failed,held > rotations.html"
	cmd.Flags().StringVar(&file, "file", "", "`file` to write; empty writes to the standard output")
	return cmd
}

// timeline collects the newest events of a history, and draws them.
type timeline struct {
	// options select the rotations to draw: those with a matching event for each option that is set. A rotation is drawn with all its events.
	options inspect.HistoryOptions
	// now is the time of the page, at which the bars of waiting and rolling workloads end.
	now   time.Time
	facts []fact
	// dropped is the number of events that were dropped because newer ones filled the page.
	dropped int
}

// add adds the next event, in the order of the stream. It ignores events that are not part of a rotation.
func (t *timeline) add(stored events.Stored) {
	f, ok := newFact(stored)
	if !ok {
		return
	}
	if t.facts = append(t.facts, f); len(t.facts) >= 2*maxEvents {
		t.drop()
	}
}

func (t *timeline) drop() {
	if old := len(t.facts) - maxEvents; old > 0 {
		t.dropped += old
		t.facts = append(t.facts[:0], t.facts[old:]...)
	}
}
