package events

import (
	"mime"
	"net/url"
	"strings"

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

// setAttribute checks and sets one attribute.
func setAttribute(attributes *event.EventContextV1, name, text string) error {
	if err := checkAttribute(name, text); err != nil {
		return err
	}
	switch name {
	case "specversion":
	case "id":
		attributes.ID = text
	case "type":
		attributes.Type = text
	case "subject":
		attributes.Subject = new(text)
	case "source", "dataschema":
		uri, err := url.Parse(text)
		switch {
		case err != nil || uri.String() != text:
			return errCanonical // url.Error quotes the value
		case name == "source":
			attributes.Source = types.URIRef{URL: *uri}
			return nil
		}
		if attributes.DataSchema = (&types.URI{URL: *uri}); !attributes.DataSchema.Validate() {
			return errCanonical
		}
	case "time":
		at, err := types.ParseTime(text)
		if year := at.UTC().Year(); err != nil || year < 1 || year > 9999 {
			return errTime
		}
		attributes.Time = &types.Timestamp{Time: at}
	case "datacontenttype":
		if _, _, err := mime.ParseMediaType(text); err != nil {
			return errMediaType
		}
		attributes.DataContentType = new(text)
	default:
		return attributes.SetExtension(name, text)
	}
	return nil
}
