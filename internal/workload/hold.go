package workload

import (
	"fmt"

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
)

// rollNow is what AnnotationRollNow says, and what was last recorded of it. The zero value asks for nothing.
type rollNow struct{ asked, done string }

// RollsNow reports whether somebody has asked that the workload be rolled for what is pending, and it was not since.
func (w *Workload) RollsNow() bool { return w.now.asked != "" && w.now.asked != w.now.done }

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
	w.now.asked = asked
}

// mayRoll returns what has a patch that rolls be refused if the workload was put on hold since. If somebody has asked for the roll, it records that
// instead.
func (w *Workload) mayRoll(write Write) []operation {
	switch {
	case !write.Rolls:
		return nil
	case w.RollsNow():
		return w.stored.write(annotationRolledNow, w.now.asked)
	}
	return []operation{w.stored.unchanged(events.AnnotationHold)}
}
