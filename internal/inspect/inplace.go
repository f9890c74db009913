package inspect

import (
	"fmt"
	"io"

	"github.com/keyturn/keyturn/internal/workload"
)

// writeInPlace writes how the pods of a workload are told of a change instead of being replaced, and of what they are not.
func writeInPlace(w *workload.Workload, out io.Writer) {
	if w.InPlace == nil {
		return
	}
	fmt.Fprintf(out, "Its pods are told of a change at %s, instead of being replaced, once their files are new.\n", w.InPlace.Endpoint)
	said := make(map[string]bool)
	for _, source := range w.Sources() {
		if why := w.InPlace.Refuses(source); why != "" && !said[why] {
			said[why] = true
			fmt.Fprintf(out, "They are replaced where %s.\n", why)
		}
	}
	fmt.Fprintln(out)
}
