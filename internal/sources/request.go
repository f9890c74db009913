package sources

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// maxCause is the longest event id that is accepted as a cause, in bytes.
const maxCause = 1200

// request is why an object was asked to be written, according to its annotations.
type request struct {
	// event is the id of the event that caused the request.
	event string
	trace events.TraceContext
}

// requestOf reads a request from annotations. Anyone who can edit the object can set these, so each is validated.
func requestOf(annotations map[string]string) request {
	event, parent := annotations[events.AnnotationCause], annotations[events.AnnotationTraceparent]
	if event == "" {
		// An object made by a ClusterExternalSecret has only the force-sync annotation.
		forced, _ := externalsecret.ParseForceSync(annotations[externalsecret.AnnotationForceSync])
		event, parent = forced.Event, forced.Traceparent
	}
	if event = printable(event, maxCause); event == "" {
		return request{}
	}
	return request{event: event, trace: events.TraceContext{Parent: parent}.Valid()}
}

// printable returns the text if it has at most size bytes and only printable characters, and otherwise an empty string.
func printable(text string, size int) string {
	if len(text) > size || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return text
}
