package timeline

import (
	"io"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// The limits of a page. The page says what it leaves out.
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
	// Now is when the page is made. What still waits or rolls is drawn up to then.
	Now time.Time
	// TraceURL is a template of links to traces: see events.ValidateTraceURL. If it is empty, only ids are written.
	TraceURL string
}

// Timeline collects the newest events of a history, and draws them. Use New to create one; the zero value is not usable.
type Timeline struct {
	options Options
	facts   []fact
	// dropped is how many events were dropped because newer ones filled the page.
	dropped int
}

// New returns a Timeline without events.
func New(options Options) *Timeline { return &Timeline{options: options} }

// Add adds the next event, in the order of the stream. It ignores events that are not part of a rotation.
func (t *Timeline) Add(stored events.Stored) {
	f, ok := newFact(stored)
	if !ok {
		return
	}
	if t.facts = append(t.facts, f); len(t.facts) >= 2*maxEvents {
		t.drop()
	}
}

// drop drops all but the newest events.
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
