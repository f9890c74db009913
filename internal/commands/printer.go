package commands

import (
	"io"

	"github.com/keyturn/keyturn/internal/events"
)

// textPrinter is a writer of text for users.
type textPrinter struct{ out io.Writer }

// dataPrinter is a writer of JSON or YAML.
type dataPrinter struct{ out io.Writer }

// TextPrinter returns a writer to a terminal for untrusted text: names, messages and errors of a cluster or a server. It replaces characters that
// control a terminal or reorder text by spaces, except for line feeds and tabs. Each call of Write must have whole characters.
func TextPrinter(out io.Writer) io.Writer { return textPrinter{out} }

// DataPrinter is TextPrinter for JSON and YAML. It changes no value: it writes the escapes of control characters, which mean the same in both.
// Encoders of JSON do not escape DEL and U+0080 to U+009F, one of which begins a terminal's escape sequence.
func DataPrinter(out io.Writer) io.Writer { return dataPrinter{out} }

// Write implements io.Writer.
func (p textPrinter) Write(text []byte) (int, error) {
	return printTo(p.out, events.PrintableLines(string(text)), len(text))
}

// Write implements io.Writer.
func (p dataPrinter) Write(text []byte) (int, error) {
	return printTo(p.out, events.EscapeControls(string(text)), len(text))
}

// printTo writes a clean text, and returns the size of the original text.
func printTo(out io.Writer, clean string, size int) (int, error) {
	if _, err := io.WriteString(out, clean); err != nil {
		return 0, err
	}
	return size, nil
}
