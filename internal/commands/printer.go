package commands

import (
	"io"

	"github.com/keyturn/keyturn/internal/events"
)

// printer is a writer of untrusted text.
type printer struct {
	out io.Writer
	// data says that the text is JSON or YAML.
	data bool
}

// TextPrinter returns a writer to a terminal for untrusted text: names, messages and errors of a cluster or a server. It replaces characters that
// control a terminal or reorder text by spaces, except for line feeds and tabs. Each call of Write must have whole characters.
func TextPrinter(out io.Writer) io.Writer { return printer{out: out} }

// DataPrinter is TextPrinter for JSON and YAML. It changes no value: it writes the escapes of control characters, which mean the same in both.
// Encoders of JSON do not escape DEL and U+0080 to U+009F, one of which begins a terminal's escape sequence.
func DataPrinter(out io.Writer) io.Writer { return printer{out: out, data: true} }

// Write writes the clean text, and returns the size of the original text.
func (p printer) Write(text []byte) (int, error) {
	clean := events.PrintableLines
	if p.data {
		clean = events.EscapeControls
	}
	if _, err := io.WriteString(p.out, clean(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
