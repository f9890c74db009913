package events

import (
	"mime"
	"net/url"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

// attributesFrom parses and checks the attributes.
func attributesFrom(fields map[string]string) (*event.EventContextV1, error) {
	switch version, ok := fields["specversion"]; {
	case !ok:
		return nil, rejectf(ReasonMalformed, "no attribute specversion: not a CloudEvent in binary mode")
	case version != event.CloudEventsVersionV1:
		return nil, rejectf(ReasonUnknownVersion, "attribute specversion is not %s", event.CloudEventsVersionV1)
	}
	attributes := &event.EventContextV1{}
	for name, text := range fields {
		value, err := parseAttribute(name, text)
		if err == nil {
			err = value.set(attributes, name)
		}
		if err != nil {
			return nil, rejectf(ReasonMalformed, "attribute %s: %w", name, err)
		}
	}
	if attributes.ID == "" || attributes.Type == "" || attributes.Source.String() == "" {
		return nil, rejectf(ReasonMalformed, "the attribute id, type or source is missing")
	}
	return attributes, nil
}

// attributeValue is the value of one attribute: its text, and the parsed value if it is a URI or a time.
type attributeValue struct {
	text string
	uri  url.URL
	time time.Time
}

// parseAttribute checks one attribute.
func parseAttribute(name, text string) (attributeValue, error) {
	value := attributeValue{text: text}
	if !isWord(name) {
		return value, errName
	}
	if !isText(text) {
		return value, errText
	}
	switch name {
	case "specversion", "id", "type", "source", "subject", "time", "dataschema", "datacontenttype":
		if text == "" || text != strings.TrimSpace(text) {
			return value, errBlank
		}
	}
	switch name {
	case "source", "dataschema":
		uri, err := url.Parse(text)
		if err != nil || uri.String() != text {
			return value, errCanonical // url.Error quotes the value
		}
		value.uri = *uri
		if name == "dataschema" && !(&types.URI{URL: *uri}).Validate() {
			return value, errCanonical
		}
	case "time":
		t, err := types.ParseTime(text)
		if year := t.UTC().Year(); err != nil || year < 1 || year > 9999 {
			return value, errTime
		}
		value.time = t
	case "datacontenttype":
		if text == jsonContentType {
			break
		}
		if _, _, err := mime.ParseMediaType(text); err != nil {
			return value, errMediaType
		}
	}
	return value, nil
}

// set sets the attribute with the given name.
func (a attributeValue) set(attributes *event.EventContextV1, name string) error {
	switch name {
	case "specversion":
	case "id":
		attributes.ID = a.text
	case "type":
		attributes.Type = a.text
	case "subject":
		subject := a.text // a pointer into a would keep all of a in memory
		attributes.Subject = &subject
	case "source":
		attributes.Source = types.URIRef{URL: a.uri}
	case "dataschema":
		attributes.DataSchema = &types.URI{URL: a.uri}
	case "time":
		attributes.Time = &types.Timestamp{Time: a.time}
	case "datacontenttype":
		contentType := a.text
		attributes.DataContentType = &contentType
	default:
		return attributes.SetExtension(name, a.text)
	}
	return nil
}
