package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// These annotations are written by the actuator.
const (
	// annotationRolled, on the workload itself, is its record: the changes that it was last rolled for, by source.
	annotationRolled = "keyturn.dev/rolled"
	// annotationRevision, on the pod template, is a digest of annotationRolled and annotationReverted. When it changes, the pods are replaced.
	annotationRevision = "keyturn.dev/revision"
)

// NoVersion is the version of content that has not changed since the source was first seen. It is older than every resourceVersion.
const NoVersion = "0"

// RolledFor is the last roll of a workload for one source: the fingerprint of the content that its pods read, and the resourceVersion and UID with
// which the source got it. Its text form is "<fingerprint>@<resourceVersion>/<uid>#<scope>".
type RolledFor struct {
	Fingerprint string
	Version     string
	UID         string
	// Scope says what the fingerprint covers: two with the same scope and key ID differ only if the content does. Empty means unknown.
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

// Differs reports whether the content certainly differs from that of the change. Fingerprints of different keys cannot be compared.
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

// maxRolled is the maximum number of entries in a record. An annotation written by rolls has hardly room for more.
const maxRolled = 2000

// parseRolled reads the annotation without invalid entries. It returns nil if that is not a record, or has more than maxRolled entries.
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

// ChangesOf returns the changes of an outcome in the form of a record. Outcomes contain no low-water mark.
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

// These words replace the content in a fingerprint: of a deleted source, and of one to roll for because of its content or its deletion.
const (
	deletedContent = "deleted"
	owedContent    = "owed"
	owedDeletion   = "owed-for-deletion"
)

// key returns the ID of the key with which the fingerprint was made.
func (r RolledFor) key() string {
	key, _, _ := strings.Cut(r.Fingerprint, ":")
	return key
}

// has reports whether a word stands for the content in the fingerprint.
func (r RolledFor) has(word string) bool {
	_, content, _ := strings.Cut(r.Fingerprint, ":")
	return content == word
}

// DeletedAfter returns the record entry of a source that was deleted after the change. It differs from the content of every change.
func DeletedAfter(change RolledFor) RolledFor {
	return RolledFor{Fingerprint: change.key() + ":" + deletedContent, Version: change.Version, UID: change.UID}
}

// IsDeleted reports whether the workload was rolled because the source was deleted.
func (r RolledFor) IsDeleted() bool { return r.has(deletedContent) }

// Owed returns the record entry of a source that the workload is still to be rolled for. It differs from the entry of every change and counts as the
// oldest. Its scope is empty if the changed key is unknown.
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

// IsOwed reports whether the workload is still to be rolled for the source, for its content or its deletion.
func (r RolledFor) IsOwed() bool { return r.has(owedContent) || r.has(owedDeletion) }

// shortHash returns the first bytes of the SHA-256 of a text in hexadecimal, for names that all clients derive alike.
func shortHash(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}

// lowWater replaces the fingerprint in an entry for sources without room in the record: those of a kind that only patterns match, or those in one
// store, because each store has its own clock. Their changes are done up to the version of the entry.
const lowWater = "-"

// IsLowWater reports whether the entry stands for sources without room in the record.
func (r RolledFor) IsLowWater() bool { return r.Fingerprint == lowWater }
