package plugin

import (
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// state is the state of an object. More urgent states are higher.
type state int

const (
	// seen means that a source changed.
	seen state = iota
	// skipped means that nothing was done, or that it has been superseded.
	skipped
	ready
	running
	waiting
	failed
)

// tones are the names of the states in class attributes and in the marks of the lanes.
var tones = map[state]string{seen: "seen", skipped: "skip", ready: "ok", running: "run", waiting: "wait", failed: "fail"}

func (s state) String() string { return tones[s] }

// pending is the tone of the time between a change and the first decision about it.
const pending = "pending"

// bar is a period in which an object was in one phase. Its tone is a state's tone, or pending.
type bar struct {
	from, to time.Time
	tone     string
}

// step is marked in the lane of a row if it has a tone, and listed if it has a text.
type step struct {
	at         time.Time
	tone, text string
}

type row struct {
	// id is the id of the row in the page.
	id     string
	object eventObject
	// source says that the object is part of the chain from the write, and not a workload.
	source bool
	state  state
	// word is the state in one or two words, and why is the reason with its sentence.
	word, why string
	// since says what happened to the object in a later rotation.
	since string
	bars  []bar
	steps []step
	// first is the time of the first event about the object, and last the end of its last phase.
	first, last time.Time
	// open is the unfinished phase.
	open bar
}

// newRow returns the row for the events about an object, which must be in order of time. Start is when the rotation began. Known is when the object's
// change was first seen, or zero.
func newRow(facts []*fact, start, known time.Time) *row {
	r := &row{object: facts[0].object, first: facts[0].at, open: bar{from: known, tone: pending}}
	if isSynced(facts[0]) {
		r.source, r.open.tone = true, running.String() // The operator has been working since the change in the store.
		if !known.IsZero() && known.Before(r.first) {
			r.first = known
		}
	}
	for _, f := range facts {
		r.last = f.at
		if f.isChange() {
			r.addChange(f, start)
		} else {
			r.addOutcome(f)
		}
	}
	return r
}

// addChange adds a change of a source. The API server records the time of writes in whole seconds, so a write may seem older than its cause.
func (r *row) addChange(f *fact, start time.Time) {
	r.source = true
	word := changeWords[f.verb]
	if !f.written.IsZero() && f.written.Before(f.at) && !f.written.Before(start) {
		r.bars = append(r.bars, bar{f.written, f.at, "seen"})
		r.steps = append(r.steps, step{f.written, "", "written"})
	}
	if f.verb == events.VerbFailed {
		r.settle(f, failed, word)
		return
	}
	if r.open.tone == running.String() {
		r.close(f.at, ready.String())
	}
	r.open = bar{}
	if r.state != ready { // The text of the sync is more specific.
		r.state, r.word = seen, word
	}
	r.why = join(f.reason, f.about)
	r.steps = append(r.steps, step{f.at, seen.String(), "event " + string(f.verb)})
}

func (r *row) addOutcome(f *fact) {
	switch f.verb {
	case events.VerbHeld:
		r.close(f.at, r.open.tone)
		r.open = bar{from: f.at, tone: waiting.String()}
		r.state, r.word, r.why = waiting, "Waits", join(f.reason, f.message)
		r.steps = append(r.steps, step{f.at, "", "waits: " + f.reason})
	case events.VerbStarted:
		r.start(f)
		r.state, r.word, r.why = running, "Rolling", join(f.reason, f.message)
	case events.VerbCompleted, events.VerbApplied:
		r.start(f)
		r.settle(f, ready, completedWord(f))
	case events.VerbFailed:
		r.start(f)
		r.settle(f, failed, "Failed")
	case events.VerbSkipped:
		if f.started.IsZero() && r.state >= ready && r.state != waiting {
			return // It was rolled for the change already.
		}
		word := "Not rolled"
		switch {
		case !f.started.IsZero():
			word = "Superseded"
		case isSynced(f):
			word = "Not written"
		}
		r.settle(f, skipped, word)
	}
}

// start begins the roll, unless it has begun, because the outcome at its end has the time of the start, too.
func (r *row) start(f *fact) {
	if f.started.IsZero() || f.started.After(f.at) || r.open.tone == running.String() {
		return
	}
	r.close(f.started, r.open.tone)
	r.open = bar{from: f.started, tone: running.String()}
	r.steps = append(r.steps, step{f.started, "patch", "patched"})
}

func (r *row) settle(f *fact, s state, word string) {
	tone := r.open.tone
	if tone == running.String() {
		tone = s.String()
	}
	r.close(f.at, tone)
	r.state, r.word, r.why = s, word, join(f.reason, f.message, f.about)
	r.steps = append(r.steps, step{f.at, s.String(), strings.ToLower(word)})
}

func (r *row) close(at time.Time, tone string) {
	if !r.open.from.IsZero() && r.open.from.Before(at) {
		r.bars = append(r.bars, bar{r.open.from, at, tone})
	}
	r.open = bar{}
}

// end ends the open phase, at the time of the page, or of the later roll that superseded it.
func (r *row) end(now time.Time, later *fact) {
	if later != nil && r.state >= running {
		r.since = laterWords[later.verb] + " since for a later change, at " + stamp(later.at)
		now = later.at
	}
	if r.state != running && r.state != waiting {
		return
	}
	r.last = now
	r.close(now, r.open.tone)
	tone := r.state.String()
	if r.since != "" {
		r.state, r.word, tone = skipped, "Superseded", skipped.String()
	}
	r.steps = append(r.steps, step{at: now, tone: tone})
}

// urgent reports whether a user may have to act.
func (r *row) urgent() bool { return (r.state == failed || r.state == waiting) && r.since == "" }

// settled returns the state of the row, or skipped if a later rotation has superseded it.
func (r *row) settled() state {
	if r.since != "" {
		return skipped
	}
	return r.state
}

var changeWords = map[events.Verb]string{
	events.VerbObserved: "Found", events.VerbChanged: "Changed", events.VerbRotated: "Rotated", events.VerbDeleted: "Deleted",
	events.VerbSynced: "Synced", events.VerbIssued: "Issued", events.VerbFailed: "Failed",
}

// laterWords describe what happened to a workload since.
var laterWords = map[events.Verb]string{events.VerbStarted: "Rolling", events.VerbCompleted: "Ready", events.VerbFailed: "Failed"}

// isSynced reports whether an event is about an ExternalSecret, which is not a workload although it may have an outcome.
func isSynced(f *fact) bool {
	return strings.HasPrefix(f.object.name, string(events.KindExternalSecret)+"/")
}

func completedWord(f *fact) string {
	switch {
	case f.verb == events.VerbApplied:
		return "Applied"
	case f.reason == events.ReasonReloadedInPlace:
		return "Reloaded in place"
	case isSynced(f):
		return "Synced"
	}
	return "Ready"
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}
