package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

// History lists changes and their outcomes. Use NewHistory to create one.
type History struct {
	options  HistoryOptions
	query    bus.HistoryQuery
	warnings io.Writer
	// warned contains the texts of warnings about events whose cluster is not the one in their subject.
	warned map[string]bool
}

// NewHistory validates the options. Write and Each write a warning to warnings about events that they omit because these name another cluster than
// their subject.
func NewHistory(options HistoryOptions, now time.Time, warnings io.Writer) (*History, error) {
	query, err := options.query(now)
	if err != nil {
		return nil, err
	}
	return &History{options: options, query: query, warnings: warnings}, nil
}

// Write writes a line for each event.
func (h *History) Write(ctx context.Context, reader *bus.Reader, out io.Writer) error {
	format, columns := h.options.Format, h.options.columns()
	isEncoded := format == JSON || format == YAML
	if !isEncoded {
		at := "TIME"
		if columns.narrow {
			at = "TIME (UTC)" // The narrow times have no zone.
		}
		if err := columns.write(out, at, "CLUSTER", "NAMESPACE", "OBJECT", "EVENT", "ABOUT"); err != nil {
			return err
		}
	}
	return h.read(ctx, reader, h.query, func(stored events.Stored) error {
		switch {
		case !h.wants(stored):
			return nil
		case isEncoded:
			return h.encode(out, stored)
		}
		return columns.writeEvent(out, stored, h.options.TraceURL)
	})
}

// Each calls add for each event of the clusters since the time of the options, whatever else they select, so that what matches can be shown
// together with everything that belongs to it.
func (h *History) Each(ctx context.Context, reader *bus.Reader, add func(events.Stored)) error {
	query := bus.HistoryQuery{Clusters: h.query.Clusters, Since: h.query.Since}
	return h.read(ctx, reader, query, func(stored events.Stored) error {
		add(stored)
		return nil
	})
}

// read calls handle for each event that a query selects, except for those that name another cluster than their subject.
func (h *History) read(ctx context.Context, reader *bus.Reader, query bus.HistoryQuery, handle func(events.Stored) error) error {
	h.warned = make(map[string]bool)
	return reader.History(ctx, query, func(stored events.Stored) error {
		if h.impersonates(stored) {
			return nil
		}
		return handle(stored)
	})
}

// readHistory calls onChange for each change and onOutcome for each outcome that a query selects, oldest first. Either may be nil.
func readHistory(
	ctx context.Context, reader *bus.Reader, query bus.HistoryQuery, onChange func(events.Change), onOutcome func(events.Outcome),
) error {
	err := reader.History(ctx, query, func(stored events.Stored) error {
		if change, err := stored.Change(); err == nil && onChange != nil {
			onChange(change)
		} else if outcome, err := stored.Outcome(); err == nil && onOutcome != nil {
			onOutcome(outcome)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the history: %w", err)
	}
	return nil
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
	if !h.warned[about] {
		h.warned[about] = true
		fmt.Fprintf(h.warnings, "warning: %s, left out: %s\n", about, stored.Subject)
	}
	return true
}

// wants reports whether an event can be read, and matches the verbs and the trace.
func (h *History) wants(stored events.Stored) bool {
	verbs, trace := h.options.Verbs, h.options.Trace
	if stored.Err != nil || len(verbs) == 0 && trace == "" {
		return stored.Err == nil
	}
	e := stored.Event()
	return (len(verbs) == 0 || slices.Contains(verbs, verbOf(e))) && (trace == "" || traceOf(e) == trace)
}

// encode writes an event as a line of JSON or as a YAML document.
func (h *History) encode(out io.Writer, stored events.Stored) error {
	layout, marshal := "%s\n", json.Marshal
	if h.options.Format == YAML {
		layout, marshal = "---\n%s", marshalYAML
	}
	content, err := marshal(stored.Event())
	if err != nil {
		return fmt.Errorf("encoding the event %s: %w", stored.ID(), err)
	}
	_, err = fmt.Fprintf(out, layout, content)
	return err
}
