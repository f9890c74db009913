package workload

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// The annotations that the actuator writes.
const (
	// annotationRolled, on the workload itself, is its record: what it was last rolled for, by source.
	annotationRolled = "keyturn.dev/rolled"
	// annotationRevision, on the pod template, is a digest of annotationRolled and annotationReverted. A change of it has the pods replaced.
	annotationRevision = "keyturn.dev/revision"
	// AnnotationCause, on the pod template, is what the last roll was for, for people.
	AnnotationCause = "keyturn.dev/cause"
	// AnnotationTraceparent, on the pod template, is the trace of the last roll.
	AnnotationTraceparent = "keyturn.dev/traceparent"
)

// NoVersion stands in a record for the resourceVersion of content that has not changed since its source was first seen. No resourceVersion of a
// change is older or the same.
const NoVersion = "0"

// RolledFor is what a workload was last rolled for, of one source: the fingerprint of what its pods read, the resourceVersion since which
// that has been so, and the UID of the source. Its text form is "<fingerprint>@<resourceVersion>/<uid>#<scope>".
type RolledFor struct {
	Fingerprint string
	Version     string
	UID         string
	// Scope says what the fingerprint is of: two fingerprints of one scope and key differ only if the content does. Empty: it is not known,
	// as in the records of earlier versions, which end after the UID.
	Scope string
}

// ScopeOf returns the scope of a fingerprint of some keys of a source, which are sorted; of all of it if they are nil.
func ScopeOf(keys []string) string {
	if keys == nil {
		return "*"
	}
	return shortHash(strings.Join(keys, "\x00"), 4)
}

// String returns the text form.
func (r RolledFor) String() string {
	text := r.Fingerprint + "@" + r.Version + "/" + r.UID
	if r.Scope != "" {
		text += "#" + r.Scope
	}
	return text
}

// Differs reports whether the content is known to be other than that of the change. Fingerprints of different keys of a source, or under
// different keys of the installation, cannot be compared.
func (r RolledFor) Differs(change RolledFor) bool {
	key, _, _ := strings.Cut(r.Fingerprint, ":")
	other, _, _ := strings.Cut(change.Fingerprint, ":")
	return key == other && (r.Scope == "" || r.Scope == change.Scope) && r.Fingerprint != change.Fingerprint
}

// SameChange reports whether both are of the same change, whichever keys of the source they are about.
func (r RolledFor) SameChange(change RolledFor) bool {
	return r.Version == change.Version && r.UID == change.UID
}

func parseRolledFor(text string) (RolledFor, error) {
	fingerprint, rest, found := strings.Cut(text, "@")
	version, rest, complete := strings.Cut(rest, "/")
	uid, scope, _ := strings.Cut(rest, "#")
	if !found || !complete || fingerprint == "" || version == "" || uid == "" {
		return RolledFor{}, fmt.Errorf("%q is not <fingerprint>@<resourceVersion>/<uid>#<scope>", text)
	}
	return RolledFor{Fingerprint: fingerprint, Version: version, UID: uid, Scope: scope}, nil
}

// parseRolled reads the annotation. It skips every entry that is not valid, as after an edit by hand: the workload then counts as never rolled
// for that source.
func parseRolled(annotation string) map[string]RolledFor {
	if annotation == "" {
		return nil
	}
	var texts map[string]string
	if err := json.Unmarshal([]byte(annotation), &texts); err != nil {
		return nil
	}
	rolled := make(map[string]RolledFor, len(texts))
	for source, text := range texts {
		if entry, err := parseRolledFor(text); err == nil {
			rolled[source] = entry
		}
	}
	return rolled
}

// ChangesOf returns the changes that an outcome is about, as a record has them.
func ChangesOf(outcome events.Outcome) map[string]RolledFor {
	changes := make(map[string]RolledFor, len(outcome.Sources))
	for _, s := range outcome.Sources {
		uid, _, _ := strings.Cut(s.Event, "/")
		changes[s.Source] = RolledFor{Fingerprint: s.Fingerprint, Version: s.ResourceVersion, UID: uid}
	}
	return changes
}

// formatRolled returns the annotation. It is deterministic: encoding/json sorts the keys of a map.
func formatRolled(rolled map[string]RolledFor) (string, error) {
	texts := make(map[string]string, len(rolled))
	for source, entry := range rolled {
		texts[source] = entry.String()
	}
	text, err := json.Marshal(texts)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", annotationRolled, err)
	}
	return string(text), nil
}
