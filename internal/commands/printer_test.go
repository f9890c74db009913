package commands

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode"
)

// hostile has what clears a screen, writes to a clipboard and hides what follows, in the 7-bit and the 8-bit form, and DEL.
const hostile = "web\x1b[2J\x1b]52;c;cm0=\x07\r\u009b2J\u0085\x7f\u202e"

// control returns the first control character of a text, except line feeds and tabs, or 0.
func control(text string) rune {
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return r
		}
	}
	return 0
}

func TestTextOfOthersDoesNotControlTheTerminal(t *testing.T) {
	var out bytes.Buffer
	if n, err := fmt.Fprintf(TextPrinter(&out), "NAME\tLEADS\n%s\tyes\n", hostile); err != nil || n != len("NAME\tLEADS\n\tyes\n")+len(hostile) {
		t.Errorf("it has written %d bytes (%v)", n, err)
	}
	if want := "NAME\tLEADS\nweb [2J ]52;c;cm0=   2J   \tyes\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

func TestAPrinterReportsThatItCannotWrite(t *testing.T) {
	gone := errors.New("broken pipe")
	reader, writer := io.Pipe()
	reader.CloseWithError(gone)
	for _, out := range []io.Writer{TextPrinter(writer), DataPrinter(writer)} {
		if n, err := io.Copy(out, strings.NewReader("text")); n != 0 || !errors.Is(err, gone) {
			t.Errorf("got %d, %v", n, err)
		}
	}
}

func FuzzNoTextControlsTheTerminal(f *testing.F) {
	for _, text := range []string{hostile, "plain\n\ttext", "\xff\x9b\xc2", "\u2028\u2029\u061c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, printer := range map[string]func(io.Writer) io.Writer{"text": TextPrinter, "data": DataPrinter} {
			var out strings.Builder
			if n, err := io.WriteString(printer(&out), text); n != len(text) || err != nil {
				t.Errorf("%s: it has written %d of %d bytes (%v)", name, n, len(text), err)
			}
			if r := control(out.String()); r != 0 {
				t.Errorf("%s: it has written %U for %q", name, r, text)
			}
		}
	})
}
