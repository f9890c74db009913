package workload

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The annotations that the actuator writes.
const (
	// annotationRolled, on the workload itself, maps each source to what the workload was last rolled for.
	annotationRolled = "keyturn.dev/rolled"
	// annotationRevision, on the pod template, is a digest of annotationRolled. Its change triggers the rollout.
	annotationRevision = "keyturn.dev/revision"
	// AnnotationCause, on the pod template, is the cause of the last roll, for people.
	AnnotationCause = "keyturn.dev/cause"
	// AnnotationTraceparent, on the pod template, is the trace context of the last roll.
	AnnotationTraceparent = "keyturn.dev/traceparent"
)

// RolledFor records the content of one source that a workload was last rolled for: the fingerprint of the part that its pods read,
// the resourceVersion of the last change of that part, and the UID of the source. Its text form is
// "<fingerprint>@<resourceVersion>/<uid>".
type RolledFor struct {
	Fingerprint string
	Version     string
	UID         string
}

// String returns the text form.
func (r RolledFor) String() string { return r.Fingerprint + "@" + r.Version + "/" + r.UID }

// SameChange reports whether both are for the same change, possibly of different keys.
func (r RolledFor) SameChange(change RolledFor) bool {
	return r.Version == change.Version && r.UID == change.UID
}

func parseRolledFor(text string) (RolledFor, error) {
	fingerprint, rest, found := strings.Cut(text, "@")
	version, uid, complete := strings.Cut(rest, "/")
	if !found || !complete || fingerprint == "" || version == "" || uid == "" {
		return RolledFor{}, fmt.Errorf("%q is not <fingerprint>@<resourceVersion>/<uid>", text)
	}
	return RolledFor{Fingerprint: fingerprint, Version: version, UID: uid}, nil
}

// parseRolled parses the annotation. It skips invalid entries, so that the workload counts as never rolled for those sources.
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

// formatRolled encodes the annotation. It is deterministic, because encoding/json sorts the keys of a map.
func formatRolled(rolled map[string]RolledFor) (string, error) {
	texts := make(map[string]string, len(rolled))
	for source, entry := range rolled {
		texts[source] = entry.String()
	}
	text, err := json.Marshal(texts)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", annotationRolled, err)
	}
	return string(text), nil
}
