package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// reloadedFrom is Reloader's marker.
type reloadedFrom struct {
	Type          string   `json:"type"`
	Name          string   `json:"name"`
	Namespace     string   `json:"namespace"`
	Hash          string   `json:"hash"`
	ContainerRefs []string `json:"containerRefs"`
	ObservedAt    int64    `json:"observedAt"`
}

// marks returns the operations that write Reloader's marker or variables on the pod template, for tools that look for them. Template is a path with
// annotations. The patch fails if Reloader itself has rolled the workload for one of the changes meanwhile.
func (w *Workload) marks(template string, write Write, record map[string]RolledFor) []operation {
	known := slices.DeleteFunc(slices.Clone(write.Changes), func(c Change) bool { return reloaderWords[c.Source.Kind] == "" })
	has := w.containers
	if has == nil || len(known) == 0 {
		return nil
	}
	marker, containers := template+"/metadata/annotations"+kube.JSONPointer(AnnotationReloadedFrom), template+"/spec/containers"
	places := has.places(known)
	operations := append([]operation{test(marker, has.marker)}, has.unchanged(containers, places)...)
	if w.byVariable {
		return append(operations, has.set(containers, places, record)...)
	}
	return append(operations, add(marker, has.reloadedFor(known[len(known)-1], record)))
}

// reloadedFor returns the text of the marker, which is about the newest change only: Reloader rolls for each change.
func (c *containers) reloadedFor(newest Change, record map[string]RolledFor) string {
	marker := reloadedFrom{
		Type: reloaderWords[newest.Source.Kind], Name: newest.Source.Name, Namespace: newest.Source.Namespace,
		Hash: record[newest.Source.String()].Fingerprint, ContainerRefs: []string{}, ObservedAt: newest.At.Unix(),
	}
	if at := c.reader(newest.Source); at < len(c.list) {
		marker.ContainerRefs = append(marker.ContainerRefs, c.list[at].name)
	}
	text, _ := json.Marshal(marker) // Texts and a number can always be encoded.
	return string(text)
}

// reader returns the index of the first container that reads a source, or 0 if none does.
func (c *containers) reader(source events.Source) int {
	return c.readers[useKey{source.Kind, source.Name}]
}

// places returns the places of the variables for changes, by name. A variable that does not exist yet has the index -1.
func (c *containers) places(changes []Change) map[string]place {
	places := make(map[string]place)
	for _, change := range changes {
		name := ReloaderVariable(change.Source)
		if at, exists := c.variables[name]; exists {
			places[name] = at
		} else if _, named := places[name]; !named && len(c.list) > 0 {
			places[name] = place{container: c.reader(change.Source), variable: -1}
		}
	}
	return places
}

// unchanged returns tests that variables have the values that were read. Reloader inserts variables before the first, so that is tested, too.
func (c *containers) unchanged(path string, places map[string]place) []operation {
	var operations []operation
	for _, name := range slices.Sorted(maps.Keys(places)) {
		at := places[name]
		in := path + "/" + strconv.Itoa(at.container)
		// An index is valid only if it refers to the same container.
		operations = append(operations, test(in+"/name", c.list[at.container].name))
		switch has := c.list[at.container]; {
		case at.variable >= 0:
			there := in + "/env/" + strconv.Itoa(at.variable)
			operations = append(operations, test(there+"/name", name), test(there+"/value", at.value))
		case has.first != nil:
			operations = append(operations, test(in+"/env/0/name", has.first))
		case !has.variables:
			operations = append(operations, test(in+"/env", nil))
		}
	}
	return operations
}

// set returns the operations that set variables in the containers at a path.
func (c *containers) set(path string, places map[string]place, record map[string]RolledFor) []operation {
	var operations []operation
	begun := make(map[int]bool)
	for _, name := range slices.Sorted(maps.Keys(places)) {
		at := places[name]
		in := path + "/" + strconv.Itoa(at.container)
		variable := map[string]string{"name": name, "value": valueOf(name, record)}
		if at.variable >= 0 {
			operations = append(operations, replace(in+"/env/"+strconv.Itoa(at.variable), variable))
			continue
		}
		if !c.list[at.container].variables && !begun[at.container] {
			begun[at.container] = true
			operations = append(operations, add(in+"/env", []any{}))
		}
		operations = append(operations, add(in+"/env/-", variable))
	}
	return operations
}

// ReloaderVariable returns the name of Reloader's variable for a source: upper-case letters and digits, with an underscore for each gap between them.
func ReloaderVariable(source events.Source) string {
	var text strings.Builder
	text.WriteString(ReloaderVariablePrefix)
	between := true
	for _, c := range strings.ToUpper(source.Name) {
		valid := c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		switch {
		case valid:
			text.WriteRune(c)
		case !between:
			text.WriteByte('_')
		}
		between = !valid
	}
	return text.String() + "_" + reloaderWords[source.Kind]
}

// valueOf returns the value of a variable: a digest of the keyed fingerprints of all sources with that variable, such as foo-bar and foo.bar.
func valueOf(variable string, record map[string]RolledFor) string {
	sum := sha256.New()
	for _, text := range slices.Sorted(maps.Keys(record)) {
		source, err := events.ParseSource(text)
		if err == nil && reloaderWords[source.Kind] != "" && ReloaderVariable(source) == variable {
			fmt.Fprintf(sum, "%s %s\n", text, record[text].Fingerprint)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:20])
}

// ReloaderManager is Reloader's field manager. Each of its writes replaces the pods, or resumes the workload after it did.
const ReloaderManager = "Reloader"

func ofReloader(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Subresource == "" && entry.Manager == ReloaderManager
}

// isByReloader reports whether Reloader wrote the workload last. If a source gets its earlier content back, Reloader restores the variable and thus
// the template. Remaining pods of that template have read the same content.
func (w *Workload) isByReloader() bool { return !w.Reloaded.IsZero() && w.Manager == ReloaderManager }

// markerMargin is the maximum difference between the time in Reloader's marker, by Reloader's clock, and the time of the write.
const markerMargin = 10 * time.Second

// MayBeReloadedFor reports whether Reloader's newest write may have been a roll for a source. Depending on its strategy, Reloader leaves a marker
// that names the source of its newest roll, or a variable for each source so far. Without both, the answer is true.
func (w *Workload) MayBeReloadedFor(source events.Source) bool {
	left := w.containers
	if left == nil {
		return true
	}
	if from, marked := left.reloadedFrom(); marked {
		// If there are variables, too, Reloader may have changed its strategy since it wrote the marker.
		if len(left.variables) == 0 || IsMarkerOf(w.Reloaded, from.ObservedAt) {
			return from.Type == reloaderWords[source.Kind] && from.Name == source.Name
		}
	}
	_, varies := left.variables[ReloaderVariable(source)]
	return varies || len(left.variables) == 0
}

// IsMarkerOf reports whether the time in Reloader's marker, in seconds of Unix time, is the time of a write.
func IsMarkerOf(written time.Time, observedAt int64) bool {
	return written.Sub(time.Unix(observedAt, 0)).Abs() <= markerMargin
}

// reloadedFrom returns the marker, and false if there is none or it cannot be read.
func (c *containers) reloadedFrom() (reloadedFrom, bool) {
	text, _ := c.marker.(string)
	var from reloadedFrom
	err := json.Unmarshal([]byte(text), &from)
	return from, err == nil
}
