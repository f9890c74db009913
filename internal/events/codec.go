package events

import (
	"errors"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/nats-io/nats.go"
)

// The limits of a message. Both together are less than the 1 MiB that a NATS server takes by default.
const (
	// MaxEventSize is how many bytes the data of an event may have.
	MaxEventSize = 512 << 10
	// MaxHeaderSize is how many bytes the keys and values of a message's header may have together.
	MaxHeaderSize = 16 << 10
)

const (
	attributePrefix = "ce-"
	contentType     = "content-type"
	jsonContentType = "application/json"
)

// ToMsg writes a CloudEvent as a message in the binary mode of the NATS binding: every attribute is a header "ce-<name>"
// in lower case, percent-encoded; the payload is the data. An event that does not hold to the specification or the limits
// is refused with a RejectError.
func ToMsg(e event.Event, subject string) (*nats.Msg, error) {
	if e.Context == nil || e.SpecVersion() != event.CloudEventsVersionV1 {
		return nil, rejectf(ReasonUnknownVersion, "want CloudEvents %s", event.CloudEventsVersionV1)
	}
	attributes := e.Context.AsV1()
	fields := map[string]string{
		"specversion": event.CloudEventsVersionV1,
		"id":          attributes.ID,
		"source":      attributes.Source.String(),
		"type":        attributes.Type,
	}
	for name, value := range map[string]*string{"subject": attributes.Subject, "datacontenttype": attributes.DataContentType} {
		if value != nil {
			fields[name] = *value
		}
	}
	if attributes.Time != nil {
		fields["time"] = attributes.Time.String()
	}
	if attributes.DataSchema != nil {
		fields["dataschema"] = attributes.DataSchema.String()
	}
	for name, value := range attributes.Extensions {
		text, err := types.Format(value)
		if err != nil {
			return nil, rejectf(ReasonMalformed, "extension %s: %w", name, err)
		}
		fields[name] = text
	}
	// What could not be read must not be written, so the one check serves both directions.
	if _, err := attributesFrom(fields); err != nil {
		return nil, err
	}
	header := make(nats.Header, len(fields)+1)
	for name, value := range fields {
		header[attributePrefix+name] = []string{percentEncode(value)}
	}
	if err := checkSize(header, e.Data()); err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: subject, Header: header, Data: e.Data()}, nil
}

// FromMsg reads a CloudEvent from a message in binary mode. Everything else is refused with a RejectError, which quotes
// nothing of the message but its subject.
func FromMsg(subject string, header nats.Header, data []byte) (event.Event, error) {
	if err := checkSize(header, data); err != nil {
		return event.Event{}, err
	}
	if strings.HasPrefix(strings.ToLower(first(header, contentType)), "application/cloudevents") {
		return event.Event{}, rejectf(ReasonStructured, "the message on %s is in structured mode, want binary mode", subject)
	}
	fields := make(map[string]string, len(header))
	for key, values := range header {
		name, ok := strings.CutPrefix(strings.ToLower(key), attributePrefix)
		if !ok {
			continue
		}
		if !isWord(name) {
			return event.Event{}, rejectf(ReasonMalformed, "the message on %s has an attribute with an illegal name", subject)
		}
		if _, twice := fields[name]; twice || len(values) != 1 {
			return event.Event{}, rejectf(ReasonMalformed, "the message on %s has not one value of %s", subject, name)
		}
		value, err := percentDecode(values[0])
		if err != nil {
			return event.Event{}, rejectf(ReasonMalformed, "attribute %s on %s: %w", name, subject, err)
		}
		fields[name] = value
	}
	attributes, err := attributesFrom(fields)
	if err != nil {
		return event.Event{}, err
	}
	return event.Event{Context: attributes, DataEncoded: slices.Clone(data)}, nil
}

// attributesFrom makes the attributes from their texts and checks each.
func attributesFrom(fields map[string]string) (*event.EventContextV1, error) {
	switch version, ok := fields["specversion"]; {
	case !ok:
		return nil, rejectf(ReasonMalformed, "no attribute specversion: not a CloudEvent in binary mode")
	case version != event.CloudEventsVersionV1:
		return nil, rejectf(ReasonUnknownVersion, "attribute specversion is not %s", event.CloudEventsVersionV1)
	}
	attributes := &event.EventContextV1{}
	for name, value := range fields {
		if err := setAttribute(attributes, name, value); err != nil {
			return nil, rejectf(ReasonMalformed, "attribute %s: %w", name, err)
		}
	}
	if attributes.ID == "" || attributes.Type == "" || attributes.Source.String() == "" {
		return nil, rejectf(ReasonMalformed, "one of the attributes id, type and source is missing")
	}
	return attributes, nil
}

var (
	errBlank     = errors.New("empty, or with space around it")
	errCanonical = errors.New("not a URI in its canonical form")
	errTime      = errors.New("not a time of RFC 3339")
	errMediaType = errors.New("not a media type of RFC 2046")
	errName      = errors.New("the name is not of lower-case letters and digits")
)

func setAttribute(attributes *event.EventContextV1, name, value string) error {
	if !isWord(name) {
		return errName
	}
	if !isText(value) {
		return errText
	}
	switch name {
	case "specversion", "id", "type", "source", "subject", "time", "dataschema", "datacontenttype":
		if value == "" || value != strings.TrimSpace(value) {
			return errBlank
		}
	}
	switch name {
	case "specversion":
	case "id":
		attributes.ID = value
	case "type":
		attributes.Type = value
	case "subject":
		attributes.Subject = &value
	case "source", "dataschema":
		uri, err := url.Parse(value)
		if err != nil || uri.String() != value {
			return errCanonical // the parser's own error quotes the value
		}
		if name == "source" {
			attributes.Source = types.URIRef{URL: *uri}
			return nil
		}
		attributes.DataSchema = &types.URI{URL: *uri}
		if !attributes.DataSchema.Validate() {
			return errCanonical
		}
	case "time":
		t, err := types.ParseTime(value)
		if year := t.UTC().Year(); err != nil || year < 1 || year > 9999 {
			return errTime
		}
		attributes.Time = &types.Timestamp{Time: t}
	case "datacontenttype":
		if _, _, err := mime.ParseMediaType(value); err != nil {
			return errMediaType
		}
		attributes.DataContentType = &value
	default:
		return attributes.SetExtension(name, value)
	}
	return nil
}

func checkSize(header nats.Header, data []byte) error {
	if len(data) > MaxEventSize {
		return rejectf(ReasonOversized, "the data has %d bytes, more than %d", len(data), MaxEventSize)
	}
	if size := headerSize(header); size > MaxHeaderSize {
		return rejectf(ReasonOversized, "the header has %d bytes, more than %d", size, MaxHeaderSize)
	}
	return nil
}

func headerSize(header nats.Header) int {
	var size int
	for key, values := range header {
		for _, value := range values {
			size += len(key) + len(value) + len(": \r\n")
		}
	}
	return size
}
