package events

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// AnnotationHold is the annotation, on a workload or a source, that has nothing rolled while it is there. Its value says why, for people.
const AnnotationHold = "keyturn.dev/hold"

// maxHold is how many bytes of the value are reported.
const maxHold = 200

// HoldText returns a value of AnnotationHold for people: one line of at most maxHold bytes, without control characters. Empty
// means that it holds nothing, so that a template may leave the value empty.
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
