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

// template is a text with ${name} in place of what a notice has under that name.
//
// It is not text/template: that calls methods by name, so that the linker keeps every exported method of every type, of all
// of the Kubernetes API too. The actuator would be half as large again, and so would what of it is in memory.
type template string

// placeholder finds what is replaced.
var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// newTemplate checks that there is a value for each placeholder.
func newTemplate(text string) (template, error) {
	known := notice{}.values()
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		if _, ok := known[found[1]]; !ok {
			return "", fmt.Errorf("has ${%.100s}, want one of %s", found[1], strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return template(text), nil
}

// render puts the values of a notice in. Quote writes each in the way of the text around it.
func (t template) render(n notice, quote func(string) string) string {
	values := n.values()
	return placeholder.ReplaceAllStringFunc(string(t), func(found string) string {
		return quote(values[found[2:len(found)-1]])
	})
}

// values are what a notice has under which name.
func (n notice) values() map[string]string {
	return map[string]string{
		"id": n.ID, "time": n.Time.Format(time.RFC3339), "cluster": n.Cluster, "what": n.What, "verb": n.Verb,
		"kind": n.Kind, "namespace": n.Namespace, "name": n.Name, "workload": n.workload(),
		"reason": n.Reason, "message": n.Message, "revision": n.Revision, "sources": strings.Join(n.Sources, ", "),
		"traceId": n.TraceID, "text": n.text(),
	}
}

// text is what is said of a notice without a template. What may be long is last, for the end is cut.
func (n notice) text() string {
	text := n.What + " " + n.Verb + ": " + n.workload() + " in namespace " + n.Namespace + " of cluster " + n.Cluster
	if n.Message != "" {
		text += ", " + n.Message
	}
	text += " (" + n.Reason + ")."
	if n.TraceID != "" {
		text += " Trace " + n.TraceID + "."
	}
	if len(n.Sources) > 0 {
		text += " Changed: " + strings.Join(n.Sources, ", ") + "."
	}
	return text
}

// verbatim is the quoting of a text for people.
func verbatim(value string) string { return value }

// inJSON writes a value as it is within the quotes of a string of JSON.
func inJSON(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		return "" // a string can always be written
	}
	return string(quoted[1 : len(quoted)-1])
}
