package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/timeline"
)

// timeline returns the command that draws the history.
func (p *Plugin) timeline(program *commands.Program) *cobra.Command {
	var options inspect.HistoryOptions
	var file string
	cmd := commands.OfHistory(program, &options, func(ctx context.Context, history *inspect.History, reader *events.Reader, out io.Writer) error {
		drawn := timeline.New(timeline.Options{Selection: selection(&options), Now: time.Now(), TraceURL: options.TraceURL})
		if err := history.Each(ctx, reader, drawn.Add); err != nil {
			return err
		}
		var page bytes.Buffer
		if err := drawn.Write(&page); err != nil {
			return err
		}
		if file == "" {
			_, err := page.WriteTo(out)
			return err
		}
		if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		return nil
	})
	cmd.Use, cmd.Short = "timeline", "Draw the rotations of the history as a page of HTML."
	cmd.Example = "  kubectl keyturn timeline --since 1h --file rotations.html\n" +
		"  kubectl keyturn timeline -n shop --verb failed,held > rotations.html"
	cmd.Flags().StringVar(&file, "file", "", "`file` to write; empty writes to the standard output")
	p.inNamespace(cmd)
	return cmd
}

// selection returns which rotations a page shows. The options must be valid.
func selection(o *inspect.HistoryOptions) timeline.Selection {
	s := timeline.Selection{Namespace: o.Namespace, Source: o.Source, Verbs: o.Verbs, Trace: o.Trace}
	if w, err := inspect.WorkloadNamed(o.Workload); err == nil {
		s.Workload = w.String()
	}
	return s
}
