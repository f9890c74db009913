package events

import (
	"errors"
	"strings"
	"unicode/utf8"
)

const upperHex = "0123456789ABCDEF"

var (
	errPercent = errors.New("not percent-encoded")
	errText    = errors.New("not text that a CloudEvents attribute may hold")
)

// percentEncode writes an attribute as the header of a message holds it: space, '"', '%' and whatever is outside
// U+0021..U+007E as the percent-encoded bytes of its UTF-8. CR and LF are among them, so no value can add a header.
func percentEncode(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := range len(text) {
		if c := text[i]; c > ' ' && c <= '~' && c != '"' && c != '%' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', upperHex[c>>4], upperHex[c&0xf]})
		}
	}
	return b.String()
}

// percentDecode is the inverse of percentEncode. As the binding asks, it also takes lower-case hex digits and values in
// double quotes. What comes out is checked, so overlong and otherwise invalid UTF-8 is refused.
func percentDecode(value string) (string, error) {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = unquote(value[1 : len(value)-1])
	}
	if strings.Contains(value, "%") {
		var b strings.Builder
		b.Grow(len(value))
		for i := 0; i < len(value); i++ {
			if value[i] != '%' {
				b.WriteByte(value[i])
				continue
			}
			if i+2 >= len(value) || !isHex(value[i+1]) || !isHex(value[i+2]) {
				return "", errPercent
			}
			b.WriteByte(unhex(value[i+1])<<4 | unhex(value[i+2]))
			i += 2
		}
		value = b.String()
	}
	if !isText(value) {
		return "", errText
	}
	return value, nil
}

// unquote resolves the escapes within a quoted value: a backslash stands for the character after it.
func unquote(value string) string {
	if !strings.Contains(value, `\`) {
		return value
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) {
			i++
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// isText tells whether a CloudEvents String may be this text: valid UTF-8 without control characters and noncharacters.
func isText(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		switch {
		case r < 0x20, r >= 0x7f && r <= 0x9f:
			return false
		case r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe:
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}
