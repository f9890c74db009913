package events

import (
	"mime"
	"net/url"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

// attributesFrom parses the attributes and checks each.
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
		return nil, rejectf(ReasonMalformed, "the attribute id, type or source is missing")
	}
	return attributes, nil
}

// setAttribute checks one attribute and sets it.
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
			return errCanonical // url.Error quotes the value
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
