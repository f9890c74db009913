package workload

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// annotationLast, on the workload itself, is the mark of its last roll. It is not part of the revision.
const annotationLast = "keyturn.dev/last"

const (
	// maxLast is the maximum length of the annotation in bytes. The admission policies refuse a longer one.
	maxLast = 2000
	// maxMarked is the maximum number of changes in each list of a mark, and maxMarkedBytes the maximum size of their JSON.
	maxMarked, maxMarkedBytes = 16, 860
	// maxWord is the maximum length of other texts, and wordLetters are their characters.
	maxWord, wordLetters = 64, "abcdefghijklmnopqrstuvwxyz0123456789-"
)

// These are the values of Last.Was.
const (
	wasFine    = "ok"
	wasFailing = "failing"
)

// Last is the mark of the last roll or reload in place, with its result. The zero value means no mark.
type Last struct {
	// Revision is the revision that the roll wrote on the pod template. It is empty for a reload in place.
	Revision string `json:"rev"`
	// At is the time of the decision, in whole seconds.
	At time.Time `json:"at"`
	// For contains the changes of the roll, the newest first.
	For Marked `json:"for,omitempty"`
	// With contains the changes of earlier rolls that had failed or were not complete when this one replaced them.
	With Marked `json:"with,omitempty"`
	// Was is wasFailing if the workload was failing before, and otherwise wasFine.
	Was string `json:"was"`
	// Failed is the reason why the rollout failed, as in its outcome, and Since is when it did. They are zero if it has not failed.
	Failed string    `json:"failed,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// WasFailing reports whether the workload was failing before the roll, so that its rollout says nothing about the changes.
func (l Last) WasFailing() bool { return l.Was == wasFailing }

// Marked is a list of changes in a mark, in the form of changeText. If the last text is "+<n>", n unknown changes were left out, so every change in
// the record counts as listed.
type Marked []string

// changeText returns the name of a change in a mark: "<source>@<resourceVersion>/<uid>".
func changeText(source string, change RolledFor) string {
	return source + "@" + change.Version + "/" + change.UID
}

// parseChange parses a text of changeText. For any other text, it returns a source that no workload has.
func parseChange(text string) (source string, change RolledFor) {
	at := max(0, strings.LastIndex(text, "@"))
	version, uid, _ := strings.Cut(strings.TrimPrefix(text[at:], "@"), "/")
	return text[:at], RolledFor{Version: version, UID: uid}
}

// split returns the named changes, and the number of those that were left out.
func (m Marked) split() (named Marked, others int) {
	end := len(m) - 1
	if end < 0 || !strings.HasPrefix(m[end], "+") {
		return m, 0
	}
	n, err := strconv.Atoi(m[end])
	if err != nil || n < 1 {
		return m, 0
	}
	return m[:end], min(n, maxRolled)
}

// and returns a list of the changes of both.
func (m Marked) and(other Marked) Marked {
	named, others := m.split()
	more, left := other.split()
	return slices.Concat(named, more).leavingOut(others + left)
}

// leavingOut returns the named changes as a list that leaves out others.
func (m Marked) leavingOut(others int) Marked {
	if others == 0 {
		return m
	}
	return append(slices.Clip(m), "+"+strconv.Itoa(others))
}

// bounded returns the list within the limits of a mark.
func (m Marked) bounded() Marked {
	named, others := m.split()
	size := 0
	for i, text := range named {
		encoded, _ := json.Marshal(text) // Texts can always be encoded.
		size += len(encoded) + len(",")
		if i == maxMarked || size > maxMarkedBytes {
			return named[:i].leavingOut(others + len(named) - i)
		}
	}
	return named.leavingOut(others)
}

// readLast returns the mark of a workload if the actuator wrote it: others may restore an earlier one, or copy it to another workload.
func readLast(meta *metav1.ObjectMeta) Last {
	text, ok := meta.Annotations[annotationLast]
	if !ok || !isOurs(meta, annotationLast) {
		return Last{}
	}
	return parseLast(text)
}

// parseLast reads the annotation. Invalid text, as after a manual edit, gives no mark. Unknown fields, as of a later version, are ignored.
func parseLast(text string) Last {
	var last Last
	if len(text) > maxLast || json.Unmarshal([]byte(text), &last) != nil || !isWord(last.Revision) || !isWord(last.Failed) {
		return Last{}
	}
	if last.Was != wasFailing {
		last.Was = wasFine
	}
	last.At, last.Since = toSecond(last.At), toSecond(last.Since)
	return last
}

// isWord reports whether a text, which may be empty, has the form of revisions and reasons.
func isWord(text string) bool { return len(text) <= maxWord && strings.Trim(text, wordLetters) == "" }

// toSecond returns a time in the form of a mark, or zero if it has no such form, like the last hours of the year 9999 in some time zones.
func toSecond(at time.Time) time.Time {
	at = at.UTC().Truncate(time.Second)
	if year := at.Year(); year < 1 || year > 9999 {
		return time.Time{}
	}
	return at
}

// format returns the value of the annotation. It is deterministic.
func (l Last) format() string {
	l.For, l.With = l.For.bounded(), l.With.bounded()
	l.At, l.Since = toSecond(l.At), toSecond(l.Since)
	text, _ := json.Marshal(l) // It contains only texts, and times that toSecond has made valid.
	return string(text)
}

// lastAfter returns the operations that write the mark of a write, none if it has none. Revision is the roll's revision, or empty.
func (w *Workload) lastAfter(write Write, revision string) []operation {
	if write.Last == nil {
		return nil
	}
	last := *write.Last
	last.Revision = cmp.Or(revision, last.Revision)
	return w.stored.write(annotationLast, last.format())
}
