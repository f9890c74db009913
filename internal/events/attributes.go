package events

import (
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

// newEnvelope returns an envelope with the attributes of a message. The names are words, and the texts are text.
func newEnvelope(attributes fields) (envelope, error) {
	switch version := attributes.text("specversion"); {
	case version == "":
		return envelope{}, Rejectf(ReasonMalformed, "no attribute specversion: not a CloudEvent in binary mode")
	case version != event.CloudEventsVersionV1:
		return envelope{}, Rejectf(ReasonUnknownVersion, "attribute specversion is not %s", event.CloudEventsVersionV1)
	}
	v := envelope{id: attributes.text("id"), selfLink: attributes.text("subject"), attributes: attributes}
	for _, f := range attributes {
		var err error
		switch {
		case isBlank(f.name, f.text):
			err = errBlank
		case f.name == "source" && !isSource(f.text):
			err = errSource
		case f.name == "time":
			v.time, err = parseTime(f.text)
		case f.name == "datacontenttype" && f.text != jsonContentType:
			err = errMediaType
		}
		if err != nil {
			return envelope{}, Rejectf(ReasonMalformed, "attribute %s: %w", f.name, err)
		}
	}
	if v.id == "" || attributes.text("type") == "" || attributes.text("source") == "" {
		return envelope{}, Rejectf(ReasonMalformed, "the attribute id, type or source is missing")
	}
	return v, nil
}

// isAttribute reports whether the name is that of a standard attribute.
func isAttribute(name string) bool {
	switch name {
	case "specversion", "id", "type", "source", "subject", "time", "dataschema", "datacontenttype":
		return true
	}
	return false
}

// isBlank reports whether the text is one that no standard attribute has: empty, or with space around it.
func isBlank(name, text string) bool {
	return isAttribute(name) && (text == "" || text != strings.TrimSpace(text))
}

// isSource reports whether the text is the source of an event of Keyturn.
func isSource(text string) bool {
	rest, ours := strings.CutPrefix(text, sourceScheme)
	cluster, component, _ := strings.Cut(rest, "/")
	return ours && isLabel(cluster) && isWord(component)
}

func parseTime(text string) (time.Time, error) {
	at, err := types.ParseTime(text)
	if year := at.UTC().Year(); err != nil || year < 1 || year > 9999 {
		return time.Time{}, errTime
	}
	return at, nil
}
