package openbao

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// maxStale is the maximum number of rejected answers that are older than the audit line. A standby may answer with old data.
	maxStale = 6
	// rotationTime is how long before its audit line a rotation may have happened.
	rotationTime = 10 * time.Second
)

// hint is an audit entry that points to a path to read.
type hint struct {
	entry   entry
	meaning change // zero if the mount is not known yet
	tries   int
	due     time.Time
	backoff wait.Backoff
}

func newHint(e entry) hint {
	return hint{entry: e, backoff: wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: 30 * time.Second}}
}

// isLocated reports whether the mount, and thus the meaning, is known.
func (h *hint) isLocated() bool { return h.meaning.engine != "" }

// delayed returns the hint for its next try.
func (h hint) delayed(now time.Time) hint {
	h.due = now.Add(h.backoff.Step())
	h.tries++
	return h
}

// accepts reports whether an observation is as new as the audit entry, or whether too many older ones were rejected.
func (h *hint) accepts(o *Observation) bool { return h.tries >= maxStale || h.satisfiedBy(o) }

func (h *hint) satisfiedBy(o *Observation) bool {
	switch {
	case h.meaning.version > 0:
		written := h.entry.created
		if written.IsZero() {
			written = h.entry.at
		}
		return o.Version >= h.meaning.version || o.At.After(written)
	case h.meaning.state == Gone:
		return o.State == Gone || o.At.After(h.entry.at)
	case h.meaning.state == Deleted && h.entry.operation == "delete":
		return o.State != Live || o.At.After(h.entry.at)
	case h.meaning.operation == "rotate":
		return o.State == Gone || !o.At.Before(h.entry.at.Add(-rotationTime))
	}
	// The entry does not say which versions were undeleted or destroyed.
	return true
}

// explains reports whether the operation of the audit entry led to the observed state.
func (h *hint) explains(o *Observation) bool {
	switch {
	case h.entry.isLate():
		return false
	case h.meaning.version > 0:
		return o.Version == h.meaning.version && o.State == Live
	}
	return h.meaning.state == 0 || o.State == h.meaning.state
}
