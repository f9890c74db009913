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

// annotationLast, on the workload itself, is the mark of its last roll. It is no part of the revision.
const annotationLast = "keyturn.dev/last"

const (
	// maxLast is the greatest length of the annotation in bytes. The admission policies refuse a longer one.
	maxLast = 2000
	// maxMarked is how many changes each list of a mark names, and maxMarkedBytes how many bytes of JSON these take together.
	maxMarked, maxMarkedBytes = 16, 860
	// maxWord is the greatest length of the other texts, and wordLetters are what they consist of.
	maxWord, wordLetters = 64, "abcdefghijklmnopqrstuvwxyz0123456789-"
)

// The values of Last.Was.
const (
	wasFine    = "ok"
	wasFailing = "failing"
)

// Last is the mark of the last roll or reload in place: what was done, and what became of that. The zero value stands for no mark.
type Last struct {
	// Revision is what the roll wrote on the pod template. It is empty for a reload in place.
	Revision string `json:"rev"`
	// At is when it was decided, to the second.
	At time.Time `json:"at"`
	// For has the changes that it was for, the newest first.
	For Marked `json:"for,omitempty"`
	// With has the changes of earlier rolls that had failed, or were not complete, when this one replaced them.
	With Marked `json:"with,omitempty"`
	// Was is wasFailing if the workload was failing before, and otherwise wasFine.
	Was string `json:"was"`
	// Failed is the reason for which the rollout failed, as in its outcome, and Since is when. They are zero if it has not failed.
	Failed string    `json:"failed,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// WasFailing reports whether the workload was failing before the roll, so that its rollout says nothing about the changes.
func (l Last) WasFailing() bool { return l.Was == wasFailing }

// Marked is a list of changes in a mark, in the form of changeText. A last text "+<n>" says that n changes were left out. Nobody knows which, so
// every change in the record counts as listed then.
type Marked []string

// changeText returns how a mark names a change: "<source>@<resourceVersion>/<uid>".
func changeText(source string, change RolledFor) string {
	return source + "@" + change.Version + "/" + change.UID
}

// parseChange returns the source and the change of a text of changeText. Of any other text, the source is none that a workload has.
func parseChange(text string) (source string, change RolledFor) {
	at := max(0, strings.LastIndex(text, "@"))
	version, uid, _ := strings.Cut(strings.TrimPrefix(text[at:], "@"), "/")
	return text[:at], RolledFor{Version: version, UID: uid}
}

// split returns the changes that the list names, and how many it leaves out.
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

// bounded returns the list as it fits into a mark.
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

// readLast returns the mark of a workload, if it is as the actuator wrote it: others bring back an earlier one, or copy it to another workload.
func readLast(meta *metav1.ObjectMeta) Last {
	text, ok := meta.Annotations[annotationLast]
	if !ok || !isOurs(meta, annotationLast) {
		return Last{}
	}
	return parseLast(text)
}

// parseLast reads the annotation. Invalid text, as after a manual edit, is no mark. Unknown fields, as of a later version, are ignored.
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

// isWord reports whether a text, which may be empty, is of the form of revisions and reasons.
func isWord(text string) bool { return len(text) <= maxWord && strings.Trim(text, wordLetters) == "" }

// toSecond returns a time as a mark has it. One that has no such form, in another time zone at the end of all years, is no time.
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
	text, _ := json.Marshal(l) // It has texts, and times that toSecond makes valid.
	return string(text)
}

// lastAfter returns the operations that write the mark of a write, none if it has none. Revision is that of the roll, or empty.
func (w *Workload) lastAfter(write Write, revision string) []operation {
	if write.Last == nil {
		return nil
	}
	last := *write.Last
	last.Revision = cmp.Or(revision, last.Revision)
	return w.stored.write(annotationLast, last.format())
}
