package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/keyturn/keyturn/internal/events"
)

// historyLine has fixed columns, so that lines can be written as they arrive. The longest names exceed them.
const historyLine = "%-20s  %-12s  %-16s  %-32s  %-9s  %s"

// narrowTime has no year, because the stream keeps only 30 days.
const narrowTime = "Jan 02 15:04:05"

// columns are the columns of the history. The zero value has all of them, at full width.
type columns struct {
	// narrow cuts lines, and omits the cluster and the namespace unless clusters and namespaces say that they may differ.
	narrow               bool
	clusters, namespaces bool
}

func (c columns) write(out io.Writer, at, cluster, namespace, object, verb, about string) error {
	line := fmt.Sprintf(historyLine, at, cluster, namespace, object, verb, about)
	if c.narrow {
		line = fmt.Sprintf("%-*s  ", len(narrowTime), at)
		if c.clusters {
			line += fmt.Sprintf("%-12s  ", cluster)
		}
		if c.namespaces {
			line += fmt.Sprintf("%-14s  ", namespace)
		}
		line += fmt.Sprintf("%-24s  %-9s  %s", object, verb, about)
		line = strings.TrimRight(cut(line), " ")
	}
	_, err := io.WriteString(out, events.Printable(line)+"\n")
	return err
}

// writeEvent writes a line about an event. It skips an event of another version or on a wrong subject, which is a dead letter.
func (c columns) writeEvent(out io.Writer, stored events.Stored, traceURL string) error {
	layout := time.RFC3339
	if c.narrow {
		layout = narrowTime
	}
	e := stored.Event()
	at, verb := e.Time().UTC().Format(layout), verbOf(e)
	if o, err := stored.Outcome(); err == nil {
		return c.write(out, at, o.Cluster, o.Workload.Namespace, o.Workload.String(), verb,
			join(o.Reason, strings.Join(sourcesOf(o), ", "), o.Message, aboutTrace(o.Trace, traceURL)))
	}
	if change, err := stored.Change(); err == nil {
		return c.write(out, at, change.Cluster, change.Source.Namespace, change.Source.String(), verb,
			join(aboutChange(change), aboutTrace(change.Trace, traceURL)))
	}
	if p, err := stored.Projection(); err == nil {
		return c.write(out, at, p.Cluster, p.Target.Namespace, p.Target.String(), verb,
			join(p.Reason, p.Message, aboutTrace(p.Trace, traceURL)))
	}
	if claim, err := stored.Claim(); err == nil {
		about := "uid " + claim.UID
		if claim.Replaces != "" {
			about += "; replaces " + claim.Replaces
		}
		return c.write(out, at, claim.Cluster, "", "cluster", verb, about)
	}
	return nil
}

// verbOf returns the word before the version in an event's type.
func verbOf(e event.Event) string {
	parts := strings.Split(e.Type(), ".")
	return parts[max(len(parts)-2, 0)]
}

func aboutChange(change events.Change) string {
	var parts []string
	if len(change.Changed) > 0 {
		parts = append(parts, "keys "+strings.Join(change.Changed, ", "))
	}
	if change.Status != nil && change.Status.Secret != "" {
		parts = append(parts, string(events.KindSecret)+"/"+change.Status.Secret)
	}
	if change.Cause != nil {
		parts = append(parts, change.Cause.String())
	}
	if change.Store != nil {
		parts = append(parts, "revision "+change.Store.Revision, change.Store.By)
	}
	if change.Status != nil {
		parts = append(parts, change.Status.Reason)
	}
	return join(parts...)
}

// aboutTrace returns a link to the trace, or its ID.
func aboutTrace(trace events.TraceContext, traceURL string) string {
	link := traceLink(trace, traceURL)
	if link == "" {
		return ""
	}
	return "trace " + link
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// traceLink returns a link to a trace, or its ID without a template. It is empty if there is no trace.
func traceLink(trace events.TraceContext, template string) string {
	return cmp.Or(trace.Link(template), trace.ID())
}

// traceOf returns the id of the trace of an event, or "" if it has none.
func traceOf(e event.Event) string {
	parent, _ := e.Extensions()["traceparent"].(string)
	return events.TraceContext{Parent: parent}.ID()
}

func sourcesOf(outcome events.Outcome) []string {
	sources := make([]string, 0, len(outcome.Sources))
	for _, source := range outcome.Sources {
		sources = append(sources, source.Source)
	}
	return sources
}
