package commands

import (
	"io"

	"github.com/keyturn/keyturn/internal/events"
)

// textPrinter is a writer of text for people.
type textPrinter struct{ out io.Writer }

// dataPrinter is a writer of JSON or YAML.
type dataPrinter struct{ out io.Writer }

// TextPrinter returns a writer to a terminal of text that is partly of others: names, messages and errors of a cluster or a server. It writes spaces
// for what controls a terminal or reorders text, except for line feeds and tabs. Each call of Write has whole characters.
func TextPrinter(out io.Writer) io.Writer { return textPrinter{out} }

// DataPrinter is TextPrinter for JSON and YAML. It changes no value: it writes the escapes of control characters, which mean the same in both.
// Encoders of JSON leave DEL and U+0080 to U+009F as they are, of which one begins an escape sequence of a terminal.
func DataPrinter(out io.Writer) io.Writer { return dataPrinter{out} }

// Write implements io.Writer.
func (p textPrinter) Write(text []byte) (int, error) {
	return printTo(p.out, events.PrintableLines(string(text)), len(text))
}

// Write implements io.Writer.
func (p dataPrinter) Write(text []byte) (int, error) {
	return printTo(p.out, events.EscapeControls(string(text)), len(text))
}

// printTo writes a clean text, and returns the size of the text that it stands for.
func printTo(out io.Writer, clean string, size int) (int, error) {
	if _, err := io.WriteString(out, clean); err != nil {
		return 0, err
	}
	return size, nil
}
