package events

import (
	"mime"
	"net/url"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

func attributesFrom(fields map[string]string) (*event.EventContextV1, error) {
	switch version, ok := fields["specversion"]; {
	case !ok:
		return nil, Rejectf(ReasonMalformed, "no attribute specversion: not a CloudEvent in binary mode")
	case version != event.CloudEventsVersionV1:
		return nil, Rejectf(ReasonUnknownVersion, "attribute specversion is not %s", event.CloudEventsVersionV1)
	}
	attributes := &event.EventContextV1{}
	for name, text := range fields {
		if err := setAttribute(attributes, name, text); err != nil {
			return nil, Rejectf(ReasonMalformed, "attribute %s: %w", name, err)
		}
	}
	if attributes.ID == "" || attributes.Type == "" || attributes.Source.String() == "" {
		return nil, Rejectf(ReasonMalformed, "the attribute id, type or source is missing")
	}
	return attributes, nil
}

// checkAttribute checks what does not depend on the type of an attribute.
func checkAttribute(name, text string) error {
	switch {
	case !isWord(name):
		return errName
	case !isText(text):
		return errText
	}
	switch name {
	case "specversion", "id", "type", "source", "subject", "time", "dataschema", "datacontenttype":
		if text == "" || text != strings.TrimSpace(text) {
			return errBlank
		}
	}
	return nil
}

// setAttribute checks one attribute, and sets it unless attributes is nil.
func setAttribute(attributes *event.EventContextV1, name, text string) error {
	if err := checkAttribute(name, text); err != nil {
		return err
	}
	var uri url.URL
	var at time.Time
	switch name {
	case "source", "dataschema":
		parsed, err := url.Parse(text)
		if err != nil || parsed.String() != text {
			return errCanonical // url.Error quotes the value
		}
		if uri = *parsed; name == "dataschema" && !(&types.URI{URL: uri}).Validate() {
			return errCanonical
		}
	case "time":
		var err error
		at, err = types.ParseTime(text)
		if year := at.UTC().Year(); err != nil || year < 1 || year > 9999 {
			return errTime
		}
	case "datacontenttype":
		if text == jsonContentType {
			break
		}
		if _, _, err := mime.ParseMediaType(text); err != nil {
			return errMediaType
		}
	}
	if attributes == nil {
		return nil
	}
	switch name {
	case "specversion":
	case "id":
		attributes.ID = text
	case "type":
		attributes.Type = text
	case "subject":
		subject := text // A pointer to the parameter would cost an allocation for each attribute.
		attributes.Subject = &subject
	case "source":
		attributes.Source = types.URIRef{URL: uri}
	case "dataschema":
		attributes.DataSchema = &types.URI{URL: uri}
	case "time":
		attributes.Time = &types.Timestamp{Time: at}
	case "datacontenttype":
		contentType := text
		attributes.DataContentType = &contentType
	default:
		return attributes.SetExtension(name, text)
	}
	return nil
}
