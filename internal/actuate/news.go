package actuate

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// news is what has become of a source since the loop has last heard of it.
type news struct {
	// before is the last event that the loop has heard of, nil if there was none. since is when the first one after it came, possibly to an earlier
	// leader.
	before *events.LastChange
	since  time.Time
	// earlier are the spans of the events between it and the last one, as far as they are kept, the newest last.
	earlier []trace.SpanContext
}

// followedBy returns the news of a source when another event comes. Last is the one before it.
func (n news) followedBy(last *events.LastChange) news {
	if last == nil {
		return n
	}
	if span := last.Trace().SpanContext(); span.IsValid() {
		n.earlier = append(n.earlier, span)
		n.earlier = n.earlier[max(0, len(n.earlier)-maxEarlier):]
	}
	return n
}

// from returns what the source had before a change, nil if that is not known. A deletion or an ignored source says nothing about what pods run.
func (n news) from(change events.Change) *events.Change {
	before := n.before
	if before == nil || before.Ignore || before.Verb() == events.VerbDeleted || change.Ignore || change.Verb == events.VerbDeleted {
		return nil
	}
	from := before.Change(change.Cluster, change.Source)
	if from.ID() == change.ID() {
		return nil
	}
	return &from
}

// cameAt returns when a change came, possibly to an earlier leader, given when a watcher saw it.
func cameAt(seen, now time.Time) time.Time {
	if !seen.IsZero() && seen.Before(now) {
		return seen
	}
	return now
}
