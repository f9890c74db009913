package events

import (
	"strings"
	"unicode"
)

// Printable returns a text that others wrote as one line for people. Spaces replace line breaks, and what would control a terminal or reorder the
// text around it.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
