package openbao

import (
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const maxLineDelay = 10 * time.Second // from a change to its audit line

// change is the meaning of an audit entry: which secret may have changed, and what to expect there.
type change struct {
	path       string // in the mount
	operation  string
	state      State // that the operation leads to; zero if the line does not say
	version    int64 // that was written, or zero
	isDeletion bool  // of the current version
}

// judge returns the meaning of an entry about a mount, and whether it may change anything that is read.
func judge(e *entry, in engineMount) (change, bool) {
	rest, ok := strings.CutPrefix(e.path, in.path+"/")
	if !ok {
		return change{}, false
	}
	verb, path, _ := strings.Cut(rest, "/")
	c, deletes := change{path: path, operation: e.operation, state: Live}, e.operation == "delete"
	isKV, places := in.engine == events.EngineKV, rolePathsOf(in.engine)
	switch {
	case in.isPlain:
		if c.path = rest; deletes {
			c.state = Gone
		}
		return c, true
	case path == "" || !slices.Contains(engines, in.engine):
		return change{}, false
	case !isKV:
		c.path = places.secret + "/" + path
	}
	switch {
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
	case deletes && (isKV && verb == "metadata" || verb == places.list):
		c.state = Gone
	case verb == places.rotate && !deletes:
		c.operation = "rotate"
	case verb == places.list && e.operation == "create":
	case verb == places.list:
		c.state = 0 // An update may have rotated the role.
	default:
		return change{}, false
	}
	return c, true
}

// rolePaths has the paths of static roles in an engine: where they are rotated, where they are listed, and where their passwords are read. They are
// empty if the engine has none.
type rolePaths struct{ rotate, list, secret string }

func rolePathsOf(engine string) rolePaths {
	return map[string]rolePaths{
		events.EngineDatabase: {rotate: "rotate-role", list: "static-roles", secret: "static-creds"},
		events.EngineLDAP:     {rotate: "rotate-role", list: "static-role", secret: "static-cred"},
	}[engine]
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
