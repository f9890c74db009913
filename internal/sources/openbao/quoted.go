package openbao

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads the text of a JSON string, after its quote.
type quoted struct {
	from               *stream
	hasEnded, isClosed bool // isClosed: by the other quote, which was consumed
}

// Read implements io.Reader, for buffers of a character or more.
func (q *quoted) Read(p []byte) (n int, err error) {
	for n+utf8.UTFMax <= len(p) && !q.hasEnded {
		b, ok := q.from.peek()
		switch {
		case !ok || b == '\n':
			q.hasEnded = true
		case b == '"':
			q.from.at++
			q.hasEnded, q.isClosed = true, true
		case b == '\\':
			q.from.at++
			r, ok := q.from.escape()
			if q.hasEnded = !ok; ok {
				n += utf8.EncodeRune(p[n:], r)
			}
		default:
			p[n] = b
			n++
			q.from.at++
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// escape reads an escape sequence after its backslash, and returns its character.
func (s *stream) escape() (rune, bool) {
	b, _ := s.peek()
	switch i := strings.IndexByte(`"\/bfnrt`, b); {
	case i >= 0:
		s.at++
		return rune("\"\\/\b\f\n\r\t"[i]), true
	case b != 'u':
		return 0, false
	}
	s.at++
	first, ok := s.hex()
	if b, _ = s.peek(); !ok || !utf16.IsSurrogate(first) || b != '\\' {
		return first, ok
	}
	s.at++
	if b, _ = s.peek(); b != 'u' {
		return s.escape() // Half of a surrogate pair is dropped.
	}
	s.at++
	second, ok := s.hex()
	return utf16.DecodeRune(first, second), ok
}

func (s *stream) hex() (r rune, ok bool) {
	for range 4 {
		b, _ := s.peek()
		digit, err := strconv.ParseUint(string(rune(b)), 16, 4)
		if err != nil {
			return 0, false
		}
		r = r<<4 | rune(digit)
		s.at++
	}
	return r, true
}
