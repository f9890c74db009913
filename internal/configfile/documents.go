package configfile

import (
	"bytes"
	"fmt"
)

// single returns an error if there is more than one document, because the decoder reads only the first.
func single(content []byte) error {
	begun, ended := false, false
	number := 0
	for line := range bytes.Lines(content) {
		number++
		line = bytes.TrimRight(line, " \t\r\n")
		for _, marker := range []string{"---", "..."} {
			rest, marked := bytes.CutPrefix(line, []byte(marker))
			if !marked || len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t' {
				continue
			}
			begun, ended, line = true, ended || begun, rest
		}
		line = bytes.TrimLeft(line, " \t")
		isContent := len(line) > 0 && line[0] != '#' && (begun || line[0] != '%') // Directives come before a document.
		if isContent && ended {
			return fmt.Errorf("line %d: a second YAML document, want one in a file", number)
		}
		begun = begun || isContent
	}
	return nil
}
