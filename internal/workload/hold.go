package workload

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// AnnotationRollNow is the annotation, on a workload, that rolls it for pending changes even if something that people have configured holds
	// them back. Each value works once.
	AnnotationRollNow = "keyturn.dev/roll-now"
	// annotationRolledNow is the value of AnnotationRollNow at the last roll.
	annotationRolledNow = "keyturn.dev/rolled-now"
	// maxRollNow is the maximum length of the value in bytes. A patch repeats the value.
	maxRollNow = 128
	// maxAsked limits the number of values, of a workload and of those that run its pods.
	maxAsked = 16
)

// rollNow has the values of AnnotationRollNow, and those recorded at the last roll. The zero value asks for nothing.
type rollNow struct {
	// asked has the values, of the workload itself and of those that run its pods.
	asked []string
	// done is what was recorded at the last roll: the value, or several as JSON.
	done string
}

// ask adds a value, unless it is empty or already present.
func (n rollNow) ask(value string) rollNow {
	if value != "" && len(n.asked) < maxAsked && !slices.Contains(n.asked, value) {
		n.asked = append(slices.Clip(n.asked), value)
	}
	return n
}

// text returns what a roll records.
func (n rollNow) text() string {
	if len(n.asked) == 1 {
		return n.asked[0]
	}
	text, _ := json.Marshal(n.asked) // Texts can always be encoded.
	return string(text)
}

// isDone reports whether all values in asked were recorded.
func (n rollNow) isDone() bool {
	var several []string
	_ = json.Unmarshal([]byte(n.done), &several) // If that fails, it is a single value.
	return !slices.ContainsFunc(n.asked, func(value string) bool { return value != n.done && !slices.Contains(several, value) })
}

// RollsNow reports whether somebody has asked to roll the workload now, and it has not been rolled since.
func (w *Workload) RollsNow() bool { return !w.now.isDone() }

// readHold reads whether the workload is on hold, and whether it is to be rolled now.
func (w *Workload) readHold(on map[string]string) {
	if text, ok := on[events.AnnotationHold]; ok {
		w.stored.keep(events.AnnotationHold, text)
		w.Hold = events.HoldText(text)
	}
	if done, ok := on[annotationRolledNow]; ok {
		w.stored.keep(annotationRolledNow, done)
		w.now.done = done
	}
	asked := on[AnnotationRollNow]
	if len(asked) > maxRollNow {
		w.Problems = append(w.Problems, &itemError{
			annotation: AnnotationRollNow, item: asked,
			problem: fmt.Sprintf("is longer than %d bytes: write a number or a date, another one each time", maxRollNow),
		})
		return
	}
	w.now = w.now.ask(asked)
}

// mayRoll returns the tests that make the API server refuse a patch that rolls if the workload has been put on hold since. If somebody has asked for
// the roll, it records that instead.
func (w *Workload) mayRoll(write Write) []operation {
	switch {
	case !write.Rolls:
		return nil
	case w.RollsNow():
		return w.stored.write(annotationRolledNow, w.now.text())
	}
	return []operation{w.stored.unchanged(events.AnnotationHold)}
}
