package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// History lists changes and what became of them. Make one with NewHistory.
type History struct {
	query    events.HistoryQuery
	verbs    []string
	json     bool
	traceURL string
}

// NewHistory validates the options.
func NewHistory(options HistoryOptions, now time.Time) (*History, error) {
	query, err := options.query(now)
	if err != nil {
		return nil, err
	}
	return &History{query: query, verbs: options.Verbs, json: options.Output == "json", traceURL: options.TraceURL}, nil
}

// Write writes a line for each event.
func (h *History) Write(ctx context.Context, reader *events.Reader, out io.Writer) error {
	if !h.json {
		fmt.Fprintf(out, historyLine, "TIME", "CLUSTER", "NAMESPACE", "OBJECT", "EVENT", "ABOUT")
	}
	return reader.History(ctx, h.query, func(stored events.Stored) error {
		switch {
		case !h.wants(stored):
			return nil
		case h.json:
			return writeJSON(out, stored)
		}
		return writeEvent(out, stored, h.traceURL)
	})
}

// wants reports whether an event can be read and has one of the verbs.
func (h *History) wants(stored events.Stored) bool {
	return stored.Err == nil && (len(h.verbs) == 0 || slices.Contains(h.verbs, verbOf(stored)))
}

func writeJSON(out io.Writer, stored events.Stored) error {
	line, err := json.Marshal(stored.Event)
	if err != nil {
		return fmt.Errorf("encoding the event %s: %w", stored.Event.ID(), err)
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}
