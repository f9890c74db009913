package timeline

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// state is how far an object is, the more urgent the higher.
type state int

// The states.
const (
	// seen: a source changed.
	seen state = iota
	// skipped: nothing was done, or what was done has been superseded.
	skipped
	ready
	running
	waiting
	failed
)

// tones name the states in class attributes and the marks of the lanes.
var tones = map[state]string{seen: "seen", skipped: "skip", ready: "ok", running: "run", waiting: "wait", failed: "fail"}

func (s state) String() string { return tones[s] }

// pending is the tone of the time in which a change is known and nothing decided.
const pending = "pending"

// bar is a time in which an object was in one phase. Its tone is that of a state, or pending.
type bar struct {
	from, to time.Time
	tone     string
}

// mark is a moment, with the tone of a state.
type mark struct {
	at   time.Time
	tone string
}

// phase says in words what happened at a time.
type phase struct {
	at   time.Time
	text string
}

// row is one object in a rotation.
type row struct {
	object object
	// source reports whether it is a link of the chain from the write, and no workload.
	source bool
	state  state
	// word is the state in a word or two, why the reason with its sentence.
	word, why string
	// since says what has become of it in a later rotation.
	since  string
	bars   []bar
	marks  []mark
	phases []phase
	trace  events.TraceContext
	// first is when it was first heard of, last when that ended which was last heard.
	first, last time.Time
	// open is the phase that has not ended.
	open bar
}

// newRow reads the events about an object in the order of their time. start is when the rotation began, and known when the object's change was
// first seen: zero if it was not.
func newRow(facts []*fact, start, known time.Time) *row {
	r := &row{object: facts[0].object, first: facts[0].at, open: bar{from: known, tone: pending}}
	if isSynced(facts[0]) {
		r.source, r.open.tone = true, running.String() // From the change in the store on, the operator is at work.
		if !known.IsZero() && known.Before(r.first) {
			r.first = known
		}
	}
	for _, f := range facts {
		r.last = f.at
		if f.trace.ID() != "" {
			r.trace = f.trace
		}
		switch {
		case f.isChange():
			r.addChange(f, start)
		default:
			r.addOutcome(f)
		}
	}
	return r
}

// addChange adds that a source has changed. The API server notes writes to the second, so that one may seem older than what caused it.
func (r *row) addChange(f *fact, start time.Time) {
	r.source = true
	word := changeWords[f.verb]
	if !f.written.IsZero() && f.written.Before(f.at) && !f.written.Before(start) {
		r.bars = append(r.bars, bar{f.written, f.at, "seen"})
		r.phases = append(r.phases, phase{f.written, "written"})
	}
	if f.verb == events.VerbFailed {
		r.settle(f, failed, word)
		return
	}
	if r.open.tone == running.String() {
		r.close(f.at, ready.String())
	}
	r.open = bar{}
	if r.state != ready { // that it was synced says more
		r.state, r.word = seen, word
	}
	r.why = join(f.reason, f.about)
	r.marks = append(r.marks, mark{f.at, seen.String()})
	r.phases = append(r.phases, phase{f.at, "event " + string(f.verb)})
}

func (r *row) addOutcome(f *fact) {
	switch f.verb {
	case events.VerbHeld:
		r.close(f.at, r.open.tone)
		r.open = bar{from: f.at, tone: waiting.String()}
		r.state, r.word, r.why = waiting, "Waits", join(f.reason, f.message)
		r.phases = append(r.phases, phase{f.at, "waits: " + f.reason})
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
			return // A redelivery of what it was rolled for.
		}
		word := "Not rolled"
		if !f.started.IsZero() {
			word = "Superseded"
		}
		r.settle(f, skipped, word)
	}
}

// start begins the roll, once: the outcome of its end says it again.
func (r *row) start(f *fact) {
	if f.started.IsZero() || f.started.After(f.at) || r.open.tone == running.String() {
		return
	}
	r.close(f.started, r.open.tone)
	r.open = bar{from: f.started, tone: running.String()}
	r.marks = append(r.marks, mark{f.started, "patch"})
	r.phases = append(r.phases, phase{f.started, "patched"})
}

// settle ends what is open.
func (r *row) settle(f *fact, s state, word string) {
	tone := r.open.tone
	if tone == running.String() {
		tone = s.String()
	}
	r.close(f.at, tone)
	r.state, r.word, r.why = s, word, join(f.reason, f.message, f.about)
	r.marks = append(r.marks, mark{f.at, s.String()})
	r.phases = append(r.phases, phase{f.at, lower(word)})
}

func (r *row) close(at time.Time, tone string) {
	if !r.open.from.IsZero() && r.open.from.Before(at) {
		r.bars = append(r.bars, bar{r.open.from, at, tone})
	}
	r.open = bar{}
}

// end closes what has not ended, at the time of the page or at that of the later roll which took its place.
func (r *row) end(now time.Time, later *fact) {
	if later != nil && r.state >= running {
		r.since = laterWords[later.verb] + " since for a later change, at " + later.at.UTC().Format(time.DateTime) + " UTC"
		now = later.at
	}
	if r.state != running && r.state != waiting {
		return
	}
	r.last = now
	r.close(now, r.open.tone)
	r.marks = append(r.marks, mark{now, r.state.String()})
	if r.since != "" {
		r.state, r.word = skipped, "Superseded"
		r.marks[len(r.marks)-1].tone = skipped.String()
	}
}

// urgent reports whether somebody may have to do something about it.
func (r *row) urgent() bool { return (r.state == failed || r.state == waiting) && r.since == "" }

// settled is the state of the row, where a failure that a later rotation has mended is none.
func (r *row) settled() state {
	if r.since != "" {
		return skipped
	}
	return r.state
}
