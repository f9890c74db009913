package sources

import (
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
	if event = ifPrintable(event, maxCause); event == "" {
		return request{}
	}
	return request{event: event, trace: events.TraceContext{Parent: parent}.Valid()}
}

// ifPrintable returns the text if it is a printable line of at most size bytes, and otherwise an empty string: of a name, a part is useless.
func ifPrintable(text string, size int) string {
	if events.Shorten(text, size) != text {
		return ""
	}
	return text
}
