package workload

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// AnnotationRollNow is the annotation, on a workload, that rolls it for pending changes despite a hold. Each value works once.
	AnnotationRollNow = "keyturn.dev/roll-now"
	// annotationRolledNow is the value of AnnotationRollNow at the last roll.
	annotationRolledNow = "keyturn.dev/rolled-now"
	// maxRollNow is the maximum length of the value in bytes. A patch repeats the value.
	maxRollNow = 128
	// maxAsked limits the number of values of a workload and those that run its pods.
	maxAsked = 16
)

// rollNow contains the values of AnnotationRollNow of the workload and of those that run its pods.
type rollNow []string

// and returns the values with one more, unless it is empty or already present.
func (n rollNow) and(value string) rollNow {
	if value != "" && len(n) < maxAsked && !slices.Contains(n, value) {
		n = append(slices.Clip(n), value)
	}
	return n
}

// text returns the form in which a roll records the values.
func (n rollNow) text() string {
	if len(n) == 1 {
		return n[0]
	}
	text, _ := json.Marshal([]string(n)) // Texts can always be encoded.
	return string(text)
}

// RollsNow reports whether a user has requested a roll now, and the workload has not been rolled since.
func (w *Workload) RollsNow() bool {
	var several []string
	_ = json.Unmarshal([]byte(w.rolledNow), &several) // If that fails, it is a single value.
	return slices.ContainsFunc(w.now, func(value string) bool { return value != w.rolledNow && !slices.Contains(several, value) })
}

// readRollNow reads AnnotationRollNow.
func (w *Workload) readRollNow(value string) {
	if len(value) > maxRollNow {
		w.problem(AnnotationRollNow, value, fmt.Sprintf("is longer than %d bytes: write a number or a date, another one each time", maxRollNow))
		return
	}
	w.now = w.now.and(value)
}

// mayRoll returns a test that the workload has not been put on hold meanwhile. If a user has requested the roll, it returns the record of that.
func (w *Workload) mayRoll(write Write) []operation {
	switch {
	case !write.Rolls:
		return nil
	case w.RollsNow():
		return w.stored.write(annotationRolledNow, w.now.text())
	}
	return []operation{w.stored.unchanged(events.AnnotationHold)}
}
