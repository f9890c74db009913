package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/timeline"
)

// History lists changes and their outcomes. Use NewHistory to create one.
type History struct {
	query    events.HistoryQuery
	verbs    []string
	trace    string
	format   Format
	columns  columns
	traceURL string
	// page draws the rotations. If it is nil, there is a line for each event instead.
	page     *timeline.Timeline
	warnings io.Writer
	// impersonated counts the events whose cluster is not the one in their subject, by the text of the warning about them.
	impersonated map[string]int
}

// NewHistory validates the options. Write writes a warning to warnings about events that it leaves out because they name
// another cluster than their subject.
func NewHistory(options HistoryOptions, now time.Time, warnings io.Writer) (*History, error) {
	query, err := options.query(now)
	if err != nil {
		return nil, err
	}
	h := &History{query: query, traceURL: options.TraceURL, warnings: warnings}
	if options.Output == HTML {
		h.page = timeline.New(timeline.Options{Selection: options.selection(), Now: now, TraceURL: options.TraceURL})
		return h, nil
	}
	h.columns = options.columns()
	h.verbs, h.trace, h.format = options.Verbs, options.Trace, options.Output
	return h, nil
}

// Write writes a line for each event, or the page.
func (h *History) Write(ctx context.Context, reader *events.Reader, out io.Writer) error {
	if h.page == nil && !h.isEncoded() {
		if err := h.columns.write(out, h.columns.time(), "CLUSTER", "NAMESPACE", "OBJECT", "EVENT", "ABOUT"); err != nil {
			return err
		}
	}
	h.impersonated = make(map[string]int)
	defer h.warnAgain()
	err := reader.History(ctx, h.query, func(stored events.Stored) error {
		switch {
		case h.impersonates(stored), !h.wants(stored):
			return nil
		case h.page != nil:
			h.page.Add(stored)
			return nil
		case h.isEncoded():
			return h.encode(out, stored)
		}
		return h.columns.writeEvent(out, stored, h.traceURL)
	})
	if err != nil || h.page == nil {
		return err
	}
	return h.page.Write(out)
}

// impersonates reports whether an event names another cluster than its subject. It warns about the first event of each pair of clusters.
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

// warnAgain warns how many events of each pair were left out, if there was more than the first.
func (h *History) warnAgain() {
	for _, about := range slices.Sorted(maps.Keys(h.impersonated)) {
		if count := h.impersonated[about]; count > 1 {
			fmt.Fprintf(h.warnings, "warning: %s, %d times\n", about, count)
		}
	}
}

// wants reports whether an event can be read, and matches the verbs and the trace.
func (h *History) wants(stored events.Stored) bool {
	return stored.Err == nil && (len(h.verbs) == 0 || slices.Contains(h.verbs, verbOf(stored))) && (h.trace == "" || traceOf(stored) == h.trace)
}

// isEncoded reports whether the events are written as JSON or YAML.
func (h *History) isEncoded() bool { return h.format == JSON || h.format == YAML }

// encode writes an event as a line of JSON or as a YAML document.
func (h *History) encode(out io.Writer, stored events.Stored) error {
	line, err := json.Marshal(stored.Event)
	if err != nil {
		return fmt.Errorf("encoding the event %s: %w", stored.Event.ID(), err)
	}
	if h.format == YAML {
		document, err := yaml.JSONToYAML(line)
		if err != nil {
			return fmt.Errorf("encoding the event %s: %w", stored.Event.ID(), err)
		}
		_, err = fmt.Fprintf(out, "---\n%s", document)
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}
