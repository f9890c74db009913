package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
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
	warnings io.Writer
	// impersonated counts the events that say they are of another cluster than their subject, by what is said about them.
	impersonated map[string]int
}

// NewHistory validates the options. Write says on warnings what it leaves out because it is not of the cluster that it names.
func NewHistory(options HistoryOptions, now time.Time, warnings io.Writer) (*History, error) {
	query, err := options.query(now)
	if err != nil {
		return nil, err
	}
	return &History{query: query, verbs: options.Verbs, json: options.Output == "json", traceURL: options.TraceURL, warnings: warnings}, nil
}

// Write writes a line for each event.
func (h *History) Write(ctx context.Context, reader *events.Reader, out io.Writer) error {
	if !h.json {
		fmt.Fprintf(out, historyLine, "TIME", "CLUSTER", "NAMESPACE", "OBJECT", "EVENT", "ABOUT")
	}
	h.impersonated = make(map[string]int)
	defer h.warnAgain()
	return reader.History(ctx, h.query, func(stored events.Stored) error {
		switch {
		case h.impersonates(stored), !h.wants(stored):
			return nil
		case h.json:
			return writeJSON(out, stored)
		}
		return writeEvent(out, stored, h.traceURL)
	})
}

// impersonates reports whether an event says that it is of another cluster than its subject. The first of each pair is named.
func (h *History) impersonates(stored events.Stored) bool {
	named := stored.Impersonated()
	if named == "" {
		return false
	}
	address, err := events.ParseSubject(stored.Subject)
	if err != nil {
		return true
	}
	about := fmt.Sprintf("cluster %s has published as cluster %q", address.Cluster, named)
	h.impersonated[about]++
	if h.impersonated[about] == 1 {
		fmt.Fprintf(h.warnings, "warning: %s, left out: %s\n", about, stored.Subject)
	}
	return true
}

// warnAgain says how many events of each pair were left out, if more than the one that was named.
func (h *History) warnAgain() {
	for _, about := range slices.Sorted(maps.Keys(h.impersonated)) {
		if count := h.impersonated[about]; count > 1 {
			fmt.Fprintf(h.warnings, "warning: %s, %d times\n", about, count)
		}
	}
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
