package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/events"
)

// Format is the output format of a command.
type Format string

// The formats. Not every command has all of them.
const (
	// Table is for people, with lines of at most 100 columns.
	Table Format = "table"
	// Wide is a table whose lines are never cut.
	Wide Format = "wide"
	JSON Format = "json"
	YAML Format = "yaml"
)

// narrowWidth is the width of the lines of a Table in columns.
const narrowWidth = 100

// Encode writes a value as JSON or YAML. It returns false without an error, and writes nothing, for another format.
func (f Format) Encode(out io.Writer, value any) (bool, error) {
	var content []byte
	var err error
	switch f {
	case JSON:
		content, err = json.MarshalIndent(value, "", "  ")
		content = append(content, '\n')
	case YAML:
		content, err = marshalYAML(value)
	default:
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("encoding %s: %w", f, err)
	}
	_, err = out.Write(content)
	return true, err
}

// marshalYAML is yaml.Marshal for untrusted text: yaml.Marshal reads JSON as YAML, which forbids some control characters and reads one as a space.
func marshalYAML(value any) ([]byte, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML([]byte(events.EscapeControls(string(content))))
}

// WriteTable writes a line for each row, with aligned cells. Text written by others can neither break a line nor control the terminal.
func (f Format) WriteTable(out io.Writer, rows [][]any) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		line := make([]string, len(cells))
		for i, cell := range cells {
			line[i] = events.Printable(fmt.Sprint(cell))
		}
		fmt.Fprintln(table, strings.Join(line, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if f == Table {
			line = cut(strings.TrimRight(line, " \n")) + "\n"
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	return nil
}

func cut(line string) string {
	if runes := []rune(line); len(runes) > narrowWidth {
		return string(runes[:narrowWidth-1]) + "…"
	}
	return line
}
