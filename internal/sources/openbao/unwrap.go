package openbao

import (
	"errors"
	"io"
	"slices"
	"strings"
)

const (
	readBuffer  = 64 << 10 // bytes of a body in memory
	innerBuffer = 4 << 10  // bytes of a string in it
	maxWraps    = 4        // searched levels of strings in strings
)

// finding is a part of a body that the receiver got.
type finding struct {
	verdict verdict // used, ignored, malformed or foreign
	entry   entry   // set only if the verdict is used
	isLost  bool    // malformed, and may be about a change
}

// readEntries finds the entries of an audit log in a body. It calls found for each entry, for each incomplete one, and for each line or JSON value
// without any. It returns the error that ended the body early, nil for io.EOF.
//
// Log shippers wrap lines. So a body is text with any number of JSON values: in lines or not, after a prefix, several in a line, or one over several
// lines. An entry is an object with the type and the request of one. Other objects, arrays and strings are searched for entries, a string like a
// body. The fields of an entry are not searched, because the author of a secret may choose their content.
//
// Each byte is read once for each level of strings around it. Bodies, lines and values may have any length.
func readEntries(body io.Reader, found func(finding)) error {
	u := &unwrapper{body: newStream(readBuffer), found: found}
	u.body.reset("", body)
	u.text(u.body)
	if errors.Is(u.body.err, io.EOF) {
		return nil
	}
	return u.body.err
}

type unwrapper struct {
	body  *stream
	found func(finding)
	count int       // of findings
	inner []*stream // streams of nested strings, from the outermost
	level int       // the number of nested strings
}

func (u *unwrapper) report(f finding) {
	u.count++
	u.found(f)
}

// reportForeign reports a line or a value of the body without any entry.
func (u *unwrapper) reportForeign() {
	if u.level == 0 && !u.isBroken() {
		u.report(finding{verdict: foreign})
	}
}

// isBroken reports whether the body has ended early. Its last part is not reported, because it may be sent again.
func (u *unwrapper) isBroken() bool { return u.body.err != nil && !errors.Is(u.body.err, io.EOF) }

// text reads a text to its end.
func (u *unwrapper) text(in *stream) {
	for u.line(in) {
		continue
	}
}

// line reads a line, and further ones if a JSON value does not end in it. It returns false at the end of the text.
func (u *unwrapper) line(in *stream) bool {
	before, isBlank, isNext := u.count, true, false
	for {
		b, ok := in.peek()
		isEnd := !ok || b == '\n'
		if isEnd || isNext {
			if !isBlank && u.count == before {
				u.reportForeign()
			}
			if ok && isEnd {
				in.at++
			}
			return ok
		}
		in.at++
		if strings.IndexByte(" \t\r", b) >= 0 {
			continue
		}
		switch isJSON := u.character(in, b, isBlank); {
		case isJSON:
			in.skipText() // No other value can begin in the rest of the line.
		case in.newLine:
			isNext = true
		default:
			skipLine(in)
		}
		isBlank = false
	}
}

// character reads the rest of a JSON value that begins with a character of a line. It returns false if only the beginning is like a value.
func (u *unwrapper) character(in *stream, b byte, isFirst bool) bool {
	switch {
	case b == '{':
		return u.braced(in)
	case b == '[' && isFirst:
		return u.bracketed(in)
	case b == '"' && isFirst:
		return u.wrapped(in, "")
	}
	return true
}

// skipLine reads up to the end of a line.
func skipLine(in *stream) {
	for {
		if b, ok := in.peek(); !ok || b == '\n' {
			return
		}
		in.at++
	}
}

// braced reads the rest of an object after its brace in a text. It returns false if only the beginning is like a JSON object.
func (u *unwrapper) braced(in *stream) bool {
	switch in.token() {
	case '"', '}':
		in.depth = 0
		before := u.count
		isObject := u.object(in)
		if isObject && u.count == before {
			u.reportForeign()
		}
		return isObject
	case '\\':
		return u.wrapped(in, "{") // JSON in the quotes of another format, such as logfmt.
	}
	return true
}

// bracketed reads the rest of an array after its bracket at the start of a line. It returns false if only the beginning is like a JSON array.
func (u *unwrapper) bracketed(in *stream) bool {
	if strings.IndexByte(`{["`, in.token()) < 0 {
		return true
	}
	in.depth = 0
	return in.list(']', func() bool {
		before := u.count
		isValue := u.value(in)
		if isValue && u.count == before {
			u.reportForeign()
		}
		return isValue
	})
}

// wrapped reads a string after its quote, or after the given start of its text.
func (u *unwrapper) wrapped(in *stream, start string) bool {
	if u.level == maxWraps {
		return in.skipString()
	}
	if len(u.inner) == u.level {
		u.inner = append(u.inner, newStream(innerBuffer))
	}
	content, text := &quoted{from: in}, u.inner[u.level]
	text.reset(start, content)
	in.newLine = false
	u.level++
	u.text(text)
	u.level--
	return content.isClosed
}

// value reads a value, and searches it.
func (u *unwrapper) value(in *stream) bool {
	switch in.token() {
	case '{':
		in.at++
		return u.object(in)
	case '[':
		in.at++
		return in.list(']', func() bool { return u.value(in) })
	case '"':
		in.at++
		return u.wrapped(in, "")
	}
	return in.skip()
}

// object reads an object after its brace, and reports it if it is an entry.
func (u *unwrapper) object(in *stream) bool {
	var r record
	isWhole := in.fields(func(name []byte) bool {
		if field := string(name); slices.Contains(entryFields, field) {
			return r.read(in, field)
		}
		return u.value(in)
	})
	switch {
	case isWhole && r.isEntry():
		u.report(r.finding())
	case !isWhole && r.isPart() && !u.isBroken():
		u.report(finding{verdict: malformed, isLost: r.mayBeChange()})
	}
	return isWhole
}
