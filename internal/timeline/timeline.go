package timeline

import (
	"io"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// The most that a page has. What is left out, the page says.
const (
	maxEvents    = 20_000
	maxRotations = 50
	maxRows      = 200
	maxOthers    = 100
)

// Options are what a page depends on besides the events.
type Options struct {
	// Selection says which rotations to draw.
	Selection Selection
	// Now is when the page is made: what waits or rolls has done so until then.
	Now time.Time
	// TraceURL is a template of links to traces: see events.ValidateTraceURL. Empty writes only the id.
	TraceURL string
}

// Timeline collects the newest events of a history, and draws them. The zero value is not of use: make one with New.
type Timeline struct {
	options Options
	facts   []fact
	// dropped is how many events were older than those that are kept.
	dropped int
}

// New returns a Timeline without events.
func New(options Options) *Timeline { return &Timeline{options: options} }

// Add takes the next event, in the order of the stream. It ignores what is no part of a rotation.
func (t *Timeline) Add(stored events.Stored) {
	f, ok := newFact(stored)
	if !ok {
		return
	}
	if t.facts = append(t.facts, f); len(t.facts) >= 2*maxEvents {
		t.drop()
	}
}

// drop forgets all but the newest events.
func (t *Timeline) drop() {
	if old := len(t.facts) - maxEvents; old > 0 {
		t.dropped += old
		t.facts = append(t.facts[:0], t.facts[old:]...)
	}
}

// Write writes the page.
func (t *Timeline) Write(out io.Writer) error {
	t.drop()
	return writePage(out, newPage(t))
}
