package events

import (
	"slices"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

// Stored is an event as a stream stores it. An event that was encoded, and is on no stream yet, has no Seq, Time and MessageID.
type Stored struct {
	Subject string
	// Seq is the event's sequence on the stream. PublishChange accepts it as the event to supersede.
	Seq  uint64
	Time time.Time // when the stream stored the event
	// MessageID is what the stream detects duplicates by; empty if the message has none.
	MessageID string
	// Err is the reason why the message is not a readable event, or nil. If it is set, Event returns no attributes. The other
	// fields are valid, so that a publisher can supersede the message.
	Err      error
	envelope envelope
	data     []byte
}

// NewStored returns a message of a stream as an event. If it is not a readable event, Err is the reason.
func NewStored(subject string, seq uint64, at time.Time, header map[string][]string, data []byte) Stored {
	v, err := readHeader(subject, header, data)
	if err != nil {
		data = nil
	}
	return Stored{Subject: subject, Seq: seq, Time: at, MessageID: first(header, "Nats-Msg-Id"), Err: err, envelope: v, data: data}
}

// ID returns the event's id. It is empty if the message is not a readable event.
func (s Stored) ID() string { return s.envelope.id }

// Event returns the event as a CloudEvent, which it makes for each call.
func (s Stored) Event() event.Event {
	attributes := &event.EventContextV1{
		ID: s.envelope.id, Type: s.envelope.attributes.text("type"), Extensions: make(map[string]any),
	}
	for _, f := range s.envelope.attributes {
		switch f.name {
		case "specversion", "id", "type", "dataschema": // They are set already, and no event of this version has a schema.
		case "subject":
			attributes.Subject = new(f.text)
		case "source":
			attributes.Source = *types.ParseURIRef(f.text)
		case "time":
			attributes.Time = &types.Timestamp{Time: s.envelope.time}
		case "datacontenttype":
			attributes.DataContentType = new(f.text)
		default:
			attributes.Extensions[f.name] = f.text
		}
	}
	return event.Event{Context: attributes, DataEncoded: slices.Clone(s.data)}
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
	named := s.envelope.attributes.text(extCluster)
	own := ClusterOf(s.Subject)
	if named == own {
		named, _, _ = strings.Cut(strings.TrimPrefix(s.envelope.attributes.text("source"), sourceScheme), "/")
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
