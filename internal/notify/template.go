package notify

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// template is a text in which ${name} stands for a value of a notice.
//
// It does not use text/template, which calls methods by name: the linker would then keep every exported method of every type,
// including the Kubernetes API, and the actuator would grow by half, on disk and in memory.
type template string

// placeholder matches ${name}.
var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// newTemplate checks that each placeholder names a value.
func newTemplate(text string) (template, error) {
	known := notice{}.values()
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		if _, ok := known[found[1]]; !ok {
			return "", fmt.Errorf("has ${%.100s}, want one of %s", found[1], strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return template(text), nil
}

// render replaces the placeholders by the values of the notice, each quoted for the text around it.
func (t template) render(n notice, quote func(string) string) string {
	values := n.values()
	return placeholder.ReplaceAllStringFunc(string(t), func(found string) string {
		return quote(values[found[2:len(found)-1]])
	})
}

// around returns the JSON of a template with a text in place of ${text}.
func (t template) around(text string) []byte {
	return []byte(strings.ReplaceAll(string(t), "${text}", inJSON(text)))
}

// values returns the values by the names of their placeholders.
func (n notice) values() map[string]string {
	return map[string]string{
		"id": n.ID, "time": n.Time.Format(time.RFC3339), "cluster": n.Cluster, "what": n.What, "verb": n.Verb,
		"kind": n.Kind, "namespace": n.Namespace, "name": n.Name, "workload": n.workload(),
		"reason": n.Reason, "message": n.Message, "revision": n.Revision, "sources": strings.Join(n.Sources, ", "),
		"traceId": n.TraceID, "text": n.text(),
	}
}

// verbatim does not quote the value. It is for plain text.
func verbatim(value string) string { return value }

// inJSON quotes the value for the inside of a JSON string.
func inJSON(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		return "" // a string can always be encoded
	}
	return string(quoted[1 : len(quoted)-1])
}
