package events

import (
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

// Stored is an event as a stream stores it.
type Stored struct {
	Subject string
	// Seq is the event's sequence on the stream. PublishChange accepts it as the event to supersede.
	Seq   uint64
	Event event.Event
	Time  time.Time // when the stream stored the event
	// MessageID is what the stream detects duplicates by; empty if the message has none.
	MessageID string
	// Err is the reason why the message is not a readable event, or nil. If it is set, Event has no attributes. The other
	// fields are valid, so that a publisher can supersede the message.
	Err error
}

// NewStored returns a message of a stream as an event. If it is not a readable event, Err is the reason.
func NewStored(subject string, seq uint64, at time.Time, header map[string][]string, data []byte) Stored {
	e, err := FromMsg(subject, header, data)
	if err != nil {
		e = event.New()
	}
	return Stored{Subject: subject, Seq: seq, Event: e, Time: at, MessageID: first(header, "Nats-Msg-Id"), Err: err}
}

// Change returns the stored change. It returns a RejectError if the event is not a change, or is not about the object in its subject.
func (s Stored) Change() (Change, error) { return ReadStored(s, ParseChange) }

// Outcome returns the stored outcome, with the errors of Change.
func (s Stored) Outcome() (Outcome, error) { return ReadStored(s, ParseOutcome) }

// Projection returns the stored projection, with the errors of Change.
func (s Stored) Projection() (Projection, error) { return ReadStored(s, parseProjection) }

// Claim returns the stored claim, with the errors of Change.
func (s Stored) Claim() (Claim, error) { return ReadStored(s, parseClaim) }

// ReadStored decodes a stored event, and compares it with its subject.
func ReadStored[T payload](s Stored, parse func(event.Event) (T, error)) (T, error) {
	var none T
	if s.Err != nil {
		return none, s.Err
	}
	parsed, err := parse(s.Event)
	if err != nil {
		return none, err
	}
	return parsed, matchSubject(s.Subject, parsed)
}

// LastChange returns the stored change in its compact form, with the errors of Change.
func (s Stored) LastChange() (LastChange, error) {
	change, err := s.Change()
	if err != nil {
		return LastChange{}, err
	}
	return NewLastChange(s.Seq, s.Time, change)
}

// Impersonated returns the cluster that the event claims to come from if its subject belongs to another cluster, and "" otherwise.
func (s Stored) Impersonated() string {
	if s.Err != nil {
		return ""
	}
	named, _ := s.Event.Extensions()[extCluster].(string)
	own := ClusterOf(s.Subject)
	if named == own {
		named, _, _ = strings.Cut(strings.TrimPrefix(s.Event.Source(), sourceScheme), "/")
	}
	if named == own {
		return ""
	}
	return named
}

// ClusterOf returns the cluster of a subject or a filter, or "" if it has none.
func ClusterOf(subject string) string {
	rest, ours := strings.CutPrefix(subject, ChangesRoot)
	cluster, _, _ := strings.Cut(rest, ".")
	if !ours || !isLabel(cluster) {
		return ""
	}
	return cluster
}
