package events

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// AnnotationCause is the annotation that says what an object was written for. On a pod template, it tells people what the last roll was for.
	// On an ExternalSecret, it is the id of the event for which a sync is requested, and the operator copies it to the Secret, unless the
	// ExternalSecret has a template.
	AnnotationCause = "keyturn.dev/cause"
	// AnnotationTraceparent is the annotation with the trace context of what AnnotationCause says. A Kubernetes Event has it alone, with the
	// context of what it reports.
	AnnotationTraceparent = "keyturn.dev/traceparent"
)

// AnnotationHold is the annotation, on a workload or a source, that prevents rolls while it is set. Its value tells people why.
const AnnotationHold = "keyturn.dev/hold"

// maxHold is the maximum number of bytes of the value that are reported.
const maxHold = 200

// HoldText returns a value of AnnotationHold in readable form: one line of at most maxHold bytes, without control characters. If it is
// empty, nothing is held, so a template may leave the value empty.
func HoldText(value string) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(value, "?")), " ")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if len(text) <= maxHold {
		return text
	}
	end := maxHold - len("...")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimSpace(text[:end]) + "..."
}
