package instrument

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Reference writes a table of instruments as Markdown, under a second-level heading with the title, and the text.
func Reference(w io.Writer, title, text string, table []Instrument) error {
	var doc bytes.Buffer
	fmt.Fprintf(&doc, "\n## %s\n\n%s\n", title, text)
	doc.WriteString("\n| OpenTelemetry | Prometheus | Type | Unit | Labels | Meaning |\n| --- | --- | --- | --- | --- | --- |\n")
	for i := range table {
		name, err := table[i].Prometheus()
		if err != nil {
			return err
		}
		labels, err := table[i].PrometheusLabels()
		if err != nil {
			return err
		}
		for n := range labels {
			labels[n] = "`" + labels[n] + "`"
		}
		fmt.Fprintf(&doc, "| `%s` | `%s` | %s | %s | %s | %s |\n", table[i].Name, name, table[i].prometheusType(),
			table[i].Unit, strings.Join(labels, ", "), table[i].About)
	}
	_, err := w.Write(doc.Bytes())
	return err
}
