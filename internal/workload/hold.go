package workload

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// AnnotationRollNow is the annotation, on a workload, that has what is pending rolled whatever holds it by the choice of people. Each value does
	// so once.
	AnnotationRollNow = "keyturn.dev/roll-now"
	// annotationRolledNow is the value that it had at the last roll.
	annotationRolledNow = "keyturn.dev/rolled-now"
	// maxRollNow is how many bytes the value may have. A patch repeats it.
	maxRollNow = 128
	// maxAsked is how many values count, of a workload and of those that run its pods.
	maxAsked = 16
)

// rollNow is what AnnotationRollNow says, and what was last recorded of it. The zero value asks for nothing.
type rollNow struct {
	// asked are the values, of the workload itself and of those that run its pods.
	asked []string
	// done is what was recorded at the last roll: the value, or several as JSON.
	done string
}

// ask adds a value, if it is none and not there.
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

// isDone reports whether all was recorded that is asked.
func (n rollNow) isDone() bool {
	var several []string
	_ = json.Unmarshal([]byte(n.done), &several) // It is one value, then.
	return !slices.ContainsFunc(n.asked, func(value string) bool { return value != n.done && !slices.Contains(several, value) })
}

// RollsNow reports whether somebody has asked that the workload be rolled for what is pending, and it was not since.
func (w *Workload) RollsNow() bool { return !w.now.isDone() }

// readHold reads when the workload may be rolled.
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

// mayRoll returns what has a patch that rolls, or that records what pods have reloaded, be refused if the workload was put on hold since. If
// somebody has asked for the roll, it records that instead.
func (w *Workload) mayRoll(write Write) []operation {
	switch {
	case !write.acts():
		return nil
	case w.RollsNow():
		return w.stored.write(annotationRolledNow, w.now.text())
	}
	return []operation{w.stored.unchanged(events.AnnotationHold)}
}
