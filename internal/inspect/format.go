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

// Format is how a command writes what it has read.
type Format string

// The formats. Not every command has all of them.
const (
	// Table is for people.
	Table Format = "table"
	// Wide is a table whose lines are never cut.
	Wide Format = "wide"
	JSON Format = "json"
	YAML Format = "yaml"
)

// narrowWidth is the width of narrow lines in columns.
const narrowWidth = 100

// View is how to write something.
type View struct {
	Format Format
	// Narrow cuts the lines of a table at 100 columns.
	Narrow bool
}

func (v View) isNarrow() bool { return v.Narrow && v.Format != Wide }

// Encode writes a value as JSON or YAML. It reports false, and writes nothing, for another format.
func (f Format) Encode(out io.Writer, value any) (bool, error) {
	var content []byte
	var err error
	switch f {
	case JSON:
		content, err = json.MarshalIndent(value, "", "  ")
		content = append(content, '\n')
	case YAML:
		content, err = yaml.Marshal(value)
	default:
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("encoding %s: %w", f, err)
	}
	_, err = out.Write(content)
	return true, err
}

// WriteTable writes a line for each row, with aligned cells. Text written by others can neither break a line nor control the terminal.
func (v View) WriteTable(out io.Writer, rows [][]any) error {
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
		if v.isNarrow() {
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
