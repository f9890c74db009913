package openbao

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

const (
	maxName    = 32 // compared bytes of the name of a field, and of a number
	maxNesting = 64 // of values that are searched for entries
)

// stream reads JSON piece by piece. However long a value is, only a buffer of fixed size and the start of the last string are in memory. Methods that
// read a value return false where the text ends or is not JSON, and have consumed the text up to there.
//
// A string must end in its line, and an object that is the value of a field must not begin at the start of another line. So JSON may be spread over
// lines, but a line that was cut off does not include a part of the next one.
type stream struct {
	from    io.Reader
	buffer  []byte // bytes from at to end are not consumed
	at, end int
	err     error  // the reader's last error; io.EOF at its end
	depth   int    // of objects and arrays
	newLine bool   // the last token is at the start of a line
	tokenAt int    // the position of the last token in the buffer, plus one; zero: none
	text    []byte // the start of the last string or scalar
}

func newStream(size int) *stream { return &stream{buffer: make([]byte, size)} }

// reset makes the stream read the start and then from a reader.
func (s *stream) reset(start string, from io.Reader) {
	s.from, s.err, s.depth, s.tokenAt = from, nil, 0, 0
	s.at, s.end = 0, copy(s.buffer, start)
}

// peek returns the next byte without consuming it, and false at the end.
func (s *stream) peek() (byte, bool) {
	if s.at == s.end && !s.fill() {
		return 0, false
	}
	return s.buffer[s.at], true
}

// skipText consumes bytes before the next brace or the end of the line. It looks at a limited number, because there may be only a few.
func (s *stream) skipText() {
	rest := s.buffer[s.at:min(s.end, s.at+256)]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	if i := bytes.IndexByte(rest, '{'); i >= 0 {
		rest = rest[:i]
	}
	s.at += len(rest)
}

func (s *stream) fill() bool {
	for s.err == nil {
		s.at, s.tokenAt = 0, 0
		if s.end, s.err = s.from.Read(s.buffer); s.end > 0 {
			return true
		}
	}
	s.at, s.end = 0, 0
	return false
}

// token skips white space, and returns the next byte without consuming it, so that the next call returns the same. It returns zero at the end.
func (s *stream) token() byte {
	if s.tokenAt == s.at+1 && s.at < s.end {
		return s.buffer[s.at]
	}
	s.newLine = false
	for {
		b, ok := s.peek()
		switch {
		case !ok:
			return 0
		case b == '\n':
			s.newLine = true
		case b == ' ' || b == '\t' || b == '\r':
			s.newLine = false
		default:
			s.tokenAt = s.at + 1
			return b
		}
		s.at++
	}
}

// fields reads an object after its brace. It calls field for each name, which is valid until the next string is read. field reads the value.
func (s *stream) fields(field func(name []byte) bool) bool {
	return s.list('}', func() bool {
		if s.token() != '"' {
			return false
		}
		s.at++
		name, ok := s.content(maxName)
		if !ok || s.token() != ':' {
			return false
		}
		s.at++
		if s.token() == '{' && s.newLine {
			return false
		}
		return field(name)
	})
}

// list reads an array or an object after its bracket, up to the closing one. It calls element for each element.
func (s *stream) list(closing byte, element func() bool) bool {
	if s.depth == maxNesting {
		return s.pass()
	}
	s.depth++
	for next := s.token(); next != closing; {
		if !element() {
			return false
		}
		switch next = s.token(); next {
		case closing:
		case ',':
			s.at++
		default:
			return false
		}
	}
	s.at++
	s.depth--
	return true
}

// pass reads an array or an object after its bracket, however deep it is, and checks only that its brackets are closed.
func (s *stream) pass() bool {
	for open := 1; open > 0; {
		b := s.token()
		if b == 0 || b == '{' && s.newLine {
			return false
		}
		s.at++
		switch b {
		case '"':
			if !s.skipString() {
				return false
			}
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
	}
	return true
}

// object is fields for any value. A value that is not an object is skipped.
func (s *stream) object(field func(name []byte) bool) bool {
	if s.token() != '{' {
		return s.skip()
	}
	s.at++
	return s.fields(field)
}

// skip reads a value.
func (s *stream) skip() bool {
	switch s.token() {
	case '{':
		if s.newLine {
			return false
		}
		s.at++
		return s.fields(func([]byte) bool { return s.skip() })
	case '[':
		s.at++
		return s.list(']', s.skip)
	case '"':
		s.at++
		return s.skipString()
	}
	_, ok := s.scalar()
	return ok
}

func (s *stream) skipString() bool {
	_, ok := s.content(0)
	return ok
}

// scalar reads a number, true, false or null, and returns the start of its text until the next string or scalar is read.
func (s *stream) scalar() ([]byte, bool) {
	s.text = s.text[:0]
	for {
		b, ok := s.peek()
		if !ok || !strings.ContainsRune("+-.", rune(b)) && (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
			return s.text, len(s.text) > 0
		}
		if len(s.text) < maxName {
			s.text = append(s.text, b)
		}
		s.at++
	}
}

// content reads a string after its quote, and returns at most limit bytes of its text, until the next string or scalar is read.
func (s *stream) content(limit int) ([]byte, bool) {
	s.newLine = false
	s.text = s.text[:0]
	in := quoted{from: s}
	var part [64]byte
	for {
		n, err := in.Read(part[:])
		if err != nil {
			return s.text, in.isClosed
		}
		s.text = append(s.text, part[:min(n, limit-len(s.text))]...)
	}
}

// str reads a value into out if it is a string, at most limit bytes of it, and otherwise sets out to "".
func (s *stream) str(limit int, out *string) bool {
	if *out = ""; s.token() != '"' {
		return s.skip()
	}
	s.at++
	text, ok := s.content(limit)
	*out = strings.ToValidUTF8(string(text), "\ufffd")
	return ok
}

// number reads a value into out if it is a positive integer, which shippers may write as text or with a fraction, and otherwise sets it to zero: an
// audit log can have an HMAC in the place of a number.
func (s *stream) number(out *int64) bool {
	*out = 0
	var text []byte
	var ok bool
	switch s.token() {
	case '{', '[':
		return s.skip()
	case '"':
		s.at++
		text, ok = s.content(maxName)
	default:
		text, ok = s.scalar()
	}
	whole, fraction, _ := strings.Cut(string(text), ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && strings.Trim(fraction, "0") == "" {
		*out = max(n, 0)
	}
	return ok
}
