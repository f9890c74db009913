package workload

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/keyturn/keyturn/internal/fieldpath"
)

// targetStatus says how a controller reports its progress with an object of a target.
type targetStatus struct {
	generation                      fieldpath.Path
	observed, done, failed, waiting []targetTest
	owned                           bool
}

// targetTest tests that a field equals a text or another field, or that it is missing.
type targetTest struct {
	path   fieldpath.Path
	equals string
	other  fieldpath.Path
	// missing requires that the field does not exist.
	missing bool
}

// holds reports whether an object passes the test. A missing field equals nothing.
func (t targetTest) holds(object map[string]any) bool {
	if t.missing {
		return len(t.path.Values(object)) == 0
	}
	want, known := t.equals, true
	if !t.other.Empty() {
		want, known = t.other.Text(object)
	}
	return known && slices.Contains(t.path.Texts(object), want)
}

// String says what the test requires. It quotes nothing of an object.
func (t targetTest) String() string {
	switch {
	case t.missing:
		return fmt.Sprintf("%s is missing", t.path)
	case !t.other.Empty():
		return fmt.Sprintf("%s equals %s", t.path, t.other)
	}
	return fmt.Sprintf("%s is %q", t.path, t.equals)
}

// isObserved reports whether the rest of the status is about the newest spec.
func (s targetStatus) isObserved(object map[string]any, generation int64) bool {
	if !s.generation.Empty() {
		text, _ := s.generation.Text(object)
		if observed, err := strconv.ParseInt(text, 10, 64); err != nil || observed < generation {
			return false
		}
	}
	return !slices.ContainsFunc(s.observed, func(t targetTest) bool {
		_, asked := t.other.Text(object)
		return (asked || t.other.Empty()) && !t.holds(object)
	})
}

// progress returns the progress of the rollout of an object with the given number of pods.
func (s targetStatus) progress(object map[string]any, generation int64, pods int32) Progress {
	p := Progress{Pods: pods}
	observed := s.isObserved(object, generation)
	for _, t := range s.done {
		if observed && t.holds(object) {
			p.Done++
		}
	}
	// This comes first, because a suspended controller observes nothing.
	for _, t := range s.waiting {
		if t.holds(object) {
			return p.is(Waiting, t.String())
		}
	}
	if !observed {
		return p.unobserved()
	}
	for _, t := range s.failed {
		if t.holds(object) {
			return p.is(Failed, t.String())
		}
	}
	for _, t := range s.done {
		if !t.holds(object) {
			return p.is(Progressing, "waiting until "+t.String())
		}
	}
	if len(s.done) == 0 && !s.owned {
		return p.is(Complete, "it was written; nothing says how far its controller is")
	}
	return p.is(Complete, "")
}
