package events

import (
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

// isAttribute reports whether the name is that of a standard attribute.
func isAttribute(name string) bool {
	switch name {
	case "specversion", "id", "type", "source", "subject", "time", "dataschema", "datacontenttype":
		return true
	}
	return false
}

// checkAttribute checks an attribute independently of its type.
func checkAttribute(name, text string) error {
	switch {
	case !isWord(name):
		return errName
	case !isText(text):
		return errText
	case isAttribute(name) && (text == "" || text != strings.TrimSpace(text)):
		return errBlank
	}
	return nil
}

// setAttribute checks and sets one attribute.
func setAttribute(attributes *event.EventContextV1, name, text string) error {
	err := checkAttribute(name, text)
	if err != nil {
		return err
	}
	switch name {
	case "specversion", "dataschema": // No event of this version has a schema.
	case "id":
		attributes.ID = text
	case "type":
		attributes.Type = text
	case "subject":
		attributes.Subject = new(text)
	case "source":
		attributes.Source.URL, err = parseSource(text)
	case "time":
		attributes.Time, err = parseTime(text)
	case "datacontenttype":
		if attributes.DataContentType = new(text); text != jsonContentType {
			err = errMediaType
		}
	default:
		if attributes.Extensions == nil {
			attributes.Extensions = make(map[string]any, commonExtensions)
		}
		attributes.Extensions[name] = text
	}
	return err
}

// parseSource parses the source of an event of Keyturn.
func parseSource(text string) (url.URL, error) {
	rest, ours := strings.CutPrefix(text, sourceScheme)
	cluster, component, _ := strings.Cut(rest, "/")
	if !ours || !isLabel(cluster) || !isWord(component) {
		return url.URL{}, errSource
	}
	return sourceURL(cluster, component), nil
}

func parseTime(text string) (*types.Timestamp, error) {
	at, err := types.ParseTime(text)
	if year := at.UTC().Year(); err != nil || year < 1 || year > 9999 {
		return nil, errTime
	}
	return &types.Timestamp{Time: at}, nil
}
