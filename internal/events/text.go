package events

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// percentEncode encodes an attribute for a message header: it percent-encodes the UTF-8 bytes of space, '"', '%' and
// everything outside U+0021..U+007E. This includes CR and LF, so no value can add a header.
func percentEncode(text string) string {
	if isLiteral(text) {
		return text
	}
	return escaped(text, isLiteralByte)
}

func isLiteralByte(c byte) bool { return c > ' ' && c <= '~' && c != '"' && c != '%' }

// isLiteral reports whether an attribute needs no encoding in a header, like almost all of Keyturn's.
func isLiteral(text string) bool {
	for i := range len(text) {
		if !isLiteralByte(text[i]) {
			return false
		}
	}
	return true
}

// escaped returns a text with each byte that is not plain as %XX.
func escaped(text string, isPlain func(byte) bool) string {
	if isOf(text, isPlain) {
		return text
	}
	var b strings.Builder
	for _, c := range []byte(text) {
		if isPlain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// percentDecode is the inverse of percentEncode. It also accepts lower-case hex digits. It checks the decoded text, so it rejects overlong and
// otherwise invalid UTF-8.
func percentDecode(value string) (string, error) {
	if isLiteral(value) {
		return value, nil
	}
	value, err := url.PathUnescape(value)
	switch {
	case err != nil:
		return "", errPercent // url.EscapeError quotes the value
	case !isText(value):
		return "", errText
	}
	return value, nil
}

// isText reports whether the text is a CloudEvents String: valid UTF-8 without control characters and noncharacters.
func isText(text string) bool {
	return isLiteral(text) || utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
	})
}

// Printable returns untrusted text as one line that is safe to print: characters that control a terminal or reorder text become spaces.
func Printable(text string) string { return printable(text, "") }

// PrintableLines is Printable for text with several lines: it keeps line feeds and tabs.
func PrintableLines(text string) string { return printable(text, "\n\t") }

func printable(text, kept string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !strings.ContainsRune(kept, r) {
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

const (
	// AnnotationCause is the annotation with the cause of an object's write, in words on a pod template. On an ExternalSecret, it is the id of the
	// event that requests a sync. The operator copies it to the Secret, unless there is a template.
	AnnotationCause = "keyturn.dev/cause"
	// AnnotationTraceparent is the annotation with the trace context of AnnotationCause, or of the subject of a Kubernetes Event.
	AnnotationTraceparent = "keyturn.dev/traceparent"
)

// AnnotationHold is the annotation, on a workload or a source, that prevents rolls while it is set. Its value is the reason, for users.
const AnnotationHold = "keyturn.dev/hold"

// maxHold is the maximum length of the reported value in bytes.
const maxHold = 200

// HoldText returns a value of AnnotationHold in readable form: one line of at most maxHold bytes, without control characters. An empty value holds
// nothing, so a template may leave the value empty.
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
	return strings.TrimSpace(strings.ToValidUTF8(text[:maxHold-len("...")], "")) + "..." // The cut may split a character.
}

// EscapeControls returns JSON or YAML with the escape of each control character except line feeds and tabs, which are between values.
func EscapeControls(text string) string {
	var clean strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			fmt.Fprintf(&clean, `\u%04x`, r)
		} else {
			clean.WriteRune(r)
		}
	}
	return clean.String()
}
