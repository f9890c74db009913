package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// historyLine has fixed columns, so that lines can be written as they arrive. The longest names do not fit.
const historyLine = "%-20s  %-12s  %-16s  %-32s  %-9s  %s\n"

// writeEvent writes a line about an event. An event of another version, or not of its subject, is left out: it is a dead letter.
func writeEvent(out io.Writer, stored events.Stored, traceURL string) error {
	at := stored.Event.Time().UTC().Format(time.RFC3339)
	if o, err := stored.Outcome(); err == nil {
		return writeLine(out, at, o.Cluster, o.Workload.Namespace, o.Workload.String(), verbOf(stored),
			aboutOutcome(o), aboutTrace(o.Trace, traceURL))
	}
	if c, err := stored.Change(); err == nil {
		return writeLine(out, at, c.Cluster, c.Source.Namespace, c.Source.String(), verbOf(stored),
			aboutChange(c), aboutTrace(c.Trace, traceURL))
	}
	if p, err := stored.Projection(); err == nil {
		return writeLine(out, at, p.Cluster, p.Target.Namespace, p.Target.String(), verbOf(stored),
			p.Reason, p.Message, aboutTrace(p.Trace, traceURL))
	}
	if c, err := stored.Claim(); err == nil {
		return writeLine(out, at, c.Cluster, "", "cluster", verbOf(stored), "uid "+c.UID, aboutClaim(c))
	}
	return nil
}

// verbOf returns the last word of the event's type before the version.
func verbOf(stored events.Stored) string {
	parts := strings.Split(stored.Event.Type(), ".")
	return parts[max(len(parts)-2, 0)]
}

func writeLine(out io.Writer, at, cluster, namespace, object, verb string, about ...string) error {
	_, err := fmt.Fprintf(out, historyLine, at, cluster, namespace, object, verb, join(about...))
	return err
}

func aboutOutcome(outcome events.Outcome) string {
	sources := make([]string, 0, len(outcome.Sources))
	for _, source := range outcome.Sources {
		sources = append(sources, source.Source)
	}
	return join(outcome.Reason, strings.Join(sources, ", "), outcome.Message)
}

func aboutChange(change events.Change) string {
	var parts []string
	if len(change.Changed) > 0 {
		parts = append(parts, "keys "+strings.Join(change.Changed, ", "))
	}
	if change.Cause != nil {
		parts = append(parts, "by "+change.Cause.String())
	}
	if change.Store != nil {
		parts = append(parts, "revision "+change.Store.Revision, change.Store.By)
	}
	if change.Status != nil {
		parts = append(parts, change.Status.Reason)
	}
	return join(parts...)
}

// aboutClaim names the cluster that had the name before.
func aboutClaim(claim events.Claim) string {
	if claim.Replaces == "" {
		return ""
	}
	return "replaces " + claim.Replaces
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
