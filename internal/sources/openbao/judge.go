package openbao

import (
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// maxLineDelay is how long before its audit line a change may have happened.
const maxLineDelay = 10 * time.Second

// change is the meaning of an audit entry: which secret may have changed, and what to expect there.
type change struct {
	path      string // in the mount
	operation string
	// state is the state that the operation leads to. It is zero if the line does not say.
	state State
	// version is the version that was written, or zero.
	version int64
	// isDeletion reports that the current version was deleted.
	isDeletion bool
}

// judge returns the meaning of an entry about a mount, and whether it may change anything that is read.
func judge(e *entry, in engineMount) (change, bool) {
	rest, ok := strings.CutPrefix(e.path, in.path+"/")
	if !ok {
		return change{}, false
	}
	c := change{operation: e.operation}
	switch {
	case in.isPlain():
		c.path, c.state = rest, Live
		if e.operation == "delete" {
			c.state = Gone
		}
	case in.engine == events.EngineKV:
		c.path = c.judgeKV(e, rest)
	case in.engine == events.EngineDatabase || in.engine == events.EngineLDAP:
		c.path = c.judgeRole(e, rest, rolePathsOf(in.engine))
	}
	return c, c.path != ""
}

// judgeKV fills in the change and returns the path of the secret in KV v2, or nothing if nothing changes.
func (c *change) judgeKV(e *entry, rest string) string {
	verb, path, _ := strings.Cut(rest, "/")
	switch {
	case verb == "data" && e.operation == "delete":
		c.state, c.isDeletion = Deleted, true
	case verb == "data":
		c.state, c.version = Live, e.version
	case verb == "metadata" && e.operation == "delete":
		c.state = Gone
	case verb == "delete":
		c.state, c.operation = Deleted, "delete"
	case verb == "undelete":
		c.state, c.operation = Live, "undelete"
	case verb == "destroy":
		c.state, c.operation = Destroyed, "destroy"
	default:
		return ""
	}
	return path
}

// rolePaths has the paths of static roles in an engine: where they are rotated, where they are listed, and where their passwords are read.
type rolePaths struct{ rotate, list, secret string }

func rolePathsOf(engine string) rolePaths {
	if engine == events.EngineLDAP {
		return rolePaths{rotate: "rotate-role", list: "static-role", secret: "static-cred"}
	}
	return rolePaths{rotate: "rotate-role", list: "static-roles", secret: "static-creds"}
}

// judgeRole is judgeKV for static roles.
func (c *change) judgeRole(e *entry, rest string, places rolePaths) string {
	verb, role, _ := strings.Cut(rest, "/")
	switch {
	case role == "":
		return ""
	case verb == places.rotate && e.operation != "delete":
		c.state, c.operation = Live, "rotate"
	case verb == places.list && e.operation == "delete":
		c.state = Gone
	case verb == places.list && e.operation == "create":
		c.state = Live
	case verb == places.list:
		// An update may have rotated the role.
	default:
		return ""
	}
	return places.secret + "/" + role
}

// explains reports whether the change led to the observed state.
func (c *change) explains(o *Observation) bool {
	if c.version > 0 {
		return o.Version == c.version && o.State == Live
	}
	return c.state == 0 || o.State == c.state
}

// isIn reports whether an observation is as new as the change, of which the audit log had a line at the given time. A standby may answer with old
// data.
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
