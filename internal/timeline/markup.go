package timeline

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// raw is HTML that is written unescaped. Only constants and embedded files of this package are converted to it, never the text of an event.
type raw string

// slot marks where a text is inserted into a raw: inside an element, or inside the quotes of an attribute that is neither a script, a style
// nor a link.
const slot = "{}"

// markup writes HTML. After an error, it writes nothing more, and keeps the error.
//
// It does not use html/template, which calls methods by name: the linker would then keep every exported method of every type, including the
// Kubernetes API, and the actuator would grow by half, on disk and in memory.
type markup struct {
	out io.Writer
	err error
}

// write writes HTML with an escaped text in each of its slots. The number of texts must be that of the slots. Otherwise it is an error, because a
// text without a slot might end up outside the quotes of an attribute.
func (m *markup) write(code raw, texts ...string) {
	if slots := strings.Count(string(code), slot); slots != len(texts) && m.err == nil {
		m.err = fmt.Errorf("%d texts for %d slots of %q", len(texts), slots, code)
	}
	rest := string(code)
	for _, text := range texts {
		before, after, _ := strings.Cut(rest, slot)
		m.copy(before)
		m.copy(escape(text))
		rest = after
	}
	m.copy(rest)
}

// writeIf writes HTML with one slot, unless the text for the slot is empty.
func (m *markup) writeIf(text string, code raw) {
	if text != "" {
		m.write(code, text)
	}
}

func (m *markup) copy(text string) {
	if m.err == nil {
		_, m.err = io.WriteString(m.out, text)
	}
}

// escape returns a text as HTML. NUL is replaced, because HTML does not allow it, not even escaped.
func escape(text string) string { return html.EscapeString(strings.ReplaceAll(text, "\x00", "\ufffd")) }
