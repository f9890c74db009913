package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// The annotations that the actuator writes.
const (
	// annotationRolled, on the workload itself, is its record: what it was last rolled for, by source.
	annotationRolled = "keyturn.dev/rolled"
	// annotationRevision, on the pod template, is a digest of annotationRolled and annotationReverted. When it changes, the pods are replaced.
	annotationRevision = "keyturn.dev/revision"
)

// NoVersion replaces the resourceVersion of content that has not changed since the source was first seen. It is older than every other.
const NoVersion = "0"

// RolledFor is what a workload was last rolled for with respect to one source: the fingerprint of what its pods read, and the resourceVersion and the
// UID of the source since which it has been so. Its text form is "<fingerprint>@<resourceVersion>/<uid>#<scope>".
type RolledFor struct {
	Fingerprint string
	Version     string
	UID         string
	// Scope says what the fingerprint covers: two with the same scope and key differ only if the content does. It is empty if not known.
	Scope string
}

// ScopeOf returns the scope of a fingerprint of some keys of a source, which must be sorted, or of the whole source if keys is nil.
func ScopeOf(keys []string) string {
	if keys == nil {
		return "*"
	}
	return shortHash(strings.Join(keys, "\x00"), 4)
}

// ScopeWithout returns the scope of a fingerprint of all keys of a source but some, which must be sorted.
func ScopeWithout(keys []string) string {
	return ScopeOf(nil) + "-" + shortHash(strings.Join(keys, "\x00"), 4)
}

// String returns the text form.
func (r RolledFor) String() string {
	text := r.Fingerprint + "@" + r.Version + "/" + r.UID
	if r.Scope != "" {
		text += "#" + r.Scope
	}
	return text
}

// Differs reports whether the content is known to differ from that of the change: fingerprints of different keys cannot be compared.
func (r RolledFor) Differs(change RolledFor) bool {
	return r.key() == change.key() && (r.Scope == "" || r.Scope == change.Scope) && r.Fingerprint != change.Fingerprint
}

// SameChange reports whether both are about the same change, whichever keys of the source they cover.
func (r RolledFor) SameChange(change RolledFor) bool {
	return r.Version == change.Version && r.UID == change.UID
}

// parseRolledFor reads the text form, and returns false if the text has another one.
func parseRolledFor(text string) (RolledFor, bool) {
	fingerprint, rest, _ := strings.Cut(text, "@")
	version, rest, _ := strings.Cut(rest, "/")
	uid, scope, _ := strings.Cut(rest, "#")
	return RolledFor{fingerprint, version, uid, scope}, fingerprint != "" && version != "" && uid != ""
}

// maxRolled is how many entries a record may have. In an annotation there is no room for many more that a roll has written.
const maxRolled = 2000

// parseRolled reads the annotation without invalid entries. It returns nil if that is no record, or has more than maxRolled entries.
func parseRolled(annotation string) map[string]RolledFor {
	if annotation == "" {
		return nil
	}
	var texts map[string]string
	if err := json.Unmarshal([]byte(annotation), &texts); err != nil || len(texts) > maxRolled {
		return nil
	}
	rolled := make(map[string]RolledFor, len(texts))
	for source, text := range texts {
		if entry, ok := parseRolledFor(text); ok {
			rolled[source] = entry
		}
	}
	return rolled
}

// ChangesOf returns the changes that an outcome is about, in the form of a record. No outcome of the actuator's has a low-water mark.
func ChangesOf(outcome events.Outcome) map[string]RolledFor {
	changes := make(map[string]RolledFor, len(outcome.Sources))
	for _, s := range outcome.Sources {
		if s.Fingerprint == lowWater {
			continue
		}
		uid, _, _ := strings.Cut(s.Event, "/")
		changes[s.Source] = RolledFor{Fingerprint: s.Fingerprint, Version: s.ResourceVersion, UID: uid}
	}
	return changes
}

// formatRolled returns the value of the annotation. It is deterministic, because encoding/json sorts the keys of a map.
func formatRolled(rolled map[string]RolledFor) string {
	texts := make(map[string]string, len(rolled))
	for source, entry := range rolled {
		texts[source] = entry.String()
	}
	text, _ := json.Marshal(texts) // Texts can always be encoded.
	return string(text)
}

// These replace the content in a fingerprint: of a deleted source, and of one that is still to be rolled for, for its content or its deletion.
const (
	deletedContent = "deleted"
	owedContent    = "owed"
	owedDeletion   = "owed-for-deletion"
)

// key returns the part of the fingerprint that identifies the key with which it was made.
func (r RolledFor) key() string {
	key, _, _ := strings.Cut(r.Fingerprint, ":")
	return key
}

// has reports whether a word stands for the content in the fingerprint.
func (r RolledFor) has(word string) bool {
	_, content, _ := strings.Cut(r.Fingerprint, ":")
	return content == word
}

// DeletedAfter returns the entry in the record of a source that was deleted after the change. It differs from the content of every change.
func DeletedAfter(change RolledFor) RolledFor {
	return RolledFor{Fingerprint: change.key() + ":" + deletedContent, Version: change.Version, UID: change.UID}
}

// IsDeleted reports whether the workload was rolled because the source was deleted.
func (r RolledFor) IsDeleted() bool { return r.has(deletedContent) }

// Owed returns the entry of a source that the workload is still to be rolled for. It differs from that of every change, and no entry is older. Its
// scope is empty if any key may be the one that has changed.
func Owed(change RolledFor) RolledFor {
	content, scope := owedContent, change.Scope
	if change.IsDeleted() {
		content = owedDeletion
	}
	if scope == ScopeOf(nil) {
		scope = ""
	}
	return RolledFor{Fingerprint: change.key() + ":" + content, Version: NoVersion, UID: change.UID, Scope: scope}
}

// OwesDeletion reports whether the workload is still to be rolled because the source was deleted.
func (r RolledFor) OwesDeletion() bool { return r.has(owedDeletion) }

// IsOwed reports whether the workload is still to be rolled for the source, whatever the source has.
func (r RolledFor) IsOwed() bool { return r.has(owedContent) || r.has(owedDeletion) }

// shortHash returns the first bytes of the SHA-256 of a text, in hexadecimal, for names that everyone derives in the same way.
func shortHash(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}

// lowWater replaces the fingerprint in an entry about sources that the record had no room for: those of one kind that only patterns match, or those
// in one store, because each store has its own clock. The workload is done with their changes up to the version of the entry.
const lowWater = "-"

// IsLowWater reports whether the entry is about sources that the record had no room for.
func (r RolledFor) IsLowWater() bool { return r.Fingerprint == lowWater }
