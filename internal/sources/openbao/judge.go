package openbao

import (
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const maxLineDelay = 10 * time.Second // from a change to its audit line

// change is the meaning of an audit entry: the secret that may have changed, and its expected state.
type change struct {
	path       string // in the mount
	operation  string
	state      State // of the secret after the operation; zero if unknown
	version    int64 // the written version, or zero
	isDeletion bool  // deletion of the current version
}

// judge returns the meaning of an entry about a mount, and whether it may be a change for readers.
func judge(e *entry, in engineMount) (change, bool) {
	rest, ok := strings.CutPrefix(e.path, in.path+"/")
	if !ok {
		return change{}, false
	}
	verb, path, _ := strings.Cut(rest, "/")
	at, isRead := placesOf[in.engine]
	c, deletes := change{path: at.secret + path, operation: e.operation, state: Live}, e.operation == "delete"
	switch isKV := in.engine == events.EngineKV; {
	case in.isPlain:
		if c.path = rest; deletes {
			c.state = Gone
		}
	case path == "" || !isRead:
		return change{}, false
	case isKV && verb == "data" && deletes:
		c.state, c.isDeletion = Deleted, true
	case isKV && verb == "data":
		c.version = e.version
	case isKV && verb == "delete":
		c.state, c.operation = Deleted, "delete"
	case isKV && verb == "undelete":
		c.operation = "undelete"
	case isKV && verb == "destroy":
		c.state, c.operation = Destroyed, "destroy"
	case verb == at.list && deletes:
		c.state = Gone
	case isKV:
		return change{}, false
	case verb == at.rotate && !deletes:
		c.operation = "rotate"
	case verb == at.list && e.operation == "create":
	case verb == at.list:
		c.state = 0 // An update may have rotated the role.
	default:
		return change{}, false
	}
	return c, true
}

// explains reports whether the change led to the observed state.
func (c *change) explains(o *Observation) bool {
	if c.version > 0 {
		return o.Version == c.version && o.State == Live
	}
	return c.state == 0 || o.State == c.state
}

// isIn reports whether an observation is as new as the change, which was logged at the given time. A standby may answer with old data.
func (c *change) isIn(o *Observation, at time.Time) bool {
	switch {
	case c.version > 0:
		return o.Version >= c.version || o.At.After(at)
	case c.state == Gone:
		return o.State == Gone || o.At.After(at)
	case c.isDeletion:
		return o.State != Live || o.At.After(at)
	case c.operation == "rotate":
		return o.State == Gone || !o.At.Before(at.Add(-maxLineDelay))
	}
	// The line does not say which versions were deleted, undeleted or destroyed.
	return true
}
