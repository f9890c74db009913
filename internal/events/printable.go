package events

import (
	"strings"
	"unicode"
)

// Printable returns untrusted text as a single line that is safe to print. Line breaks, and characters that would control a terminal or reorder
// the surrounding text, are replaced with spaces.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Shorten returns untrusted text as Printable does, cut to at most size bytes.
func Shorten(text string, size int) string {
	text = Printable(text)
	if len(text) > size {
		// The cut may split a character.
		text = strings.ToValidUTF8(text[:size], "")
	}
	return text
}
