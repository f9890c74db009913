package openbao

import (
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// change is the meaning of an audit entry.
type change struct {
	path      events.StorePath // without the store
	engine    string
	operation string
	// complete reports whether the entry has the whole state, so that the store need not be asked.
	complete bool
	// state is the state that the operation leads to. It is zero if the line does not say.
	state State
	// version is the version that was written, or zero.
	version int64
}

// identifies reports whether the entry identifies the version that the change led to. Such an entry is complete, whatever the store would answer
// about the mount.
func (c *change) identifies(e entry) bool { return c.version > 0 && !e.created.IsZero() }

// The versions of the KV engine, as in the option "version" of a mount.
const (
	kvV1 = 1
	kvV2 = 2
)

// judge returns the meaning of an entry, given the version of its KV engine, and whether it may change anything that is read.
func judge(e entry, mount string, kv int) (change, bool) {
	rest, ok := strings.CutPrefix(e.path, mount+"/")
	if !ok {
		return change{}, false
	}
	c := change{engine: e.engine, operation: e.operation}
	var path string
	switch e.engine {
	case events.EngineKV:
		path = c.judgeKV(e, rest, kv)
	case events.EngineDatabase, events.EngineLDAP:
		path = c.judgeRole(e, rest)
	}
	c.path = events.StorePath{Namespace: e.namespace, Mount: mount, Path: path}
	return c, path != ""
}

// judgeKV fills in the change and returns the path of the secret, or nothing if nothing changes.
func (c *change) judgeKV(e entry, rest string, kv int) string {
	verb, path, _ := strings.Cut(rest, "/")
	switch {
	case kv == kvV1:
		return c.judgePlain(e, rest)
	case verb == "data" && e.version > 0:
		c.complete, c.state, c.version = true, Live, e.version
	case verb == "data" && e.operation == "delete":
		c.state = Deleted
	case verb == "data":
		// The line of the write has no version, so the store must be asked.
	case verb == "metadata" && path != "":
		if e.operation != "delete" {
			return ""
		}
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

// judgePlain is judgeKV for KV v1, in which only values could be requested.
func (c *change) judgePlain(e entry, rest string) string {
	c.complete, c.state = true, Live
	if e.operation == "delete" {
		c.state = Gone
	}
	return rest
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
func (c *change) judgeRole(e entry, rest string) string {
	places := rolePathsOf(e.engine)
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

// guessMount returns the likely mount of a request path if neither the line nor the store names it: what precedes the first segment
// that the engine defines, or else the first segment.
func guessMount(e entry) string {
	marks := []string{"/data/", "/metadata/", "/delete/", "/undelete/", "/destroy/"}
	if e.engine != events.EngineKV {
		places := rolePathsOf(e.engine)
		marks = []string{"/" + places.rotate + "/", "/" + places.list + "/"}
	}
	end := -1
	for _, mark := range marks {
		if at := strings.Index(e.path, mark); at > 0 && (end < 0 || at < end) {
			end = at
		}
	}
	if end < 0 {
		mount, _, _ := strings.Cut(e.path, "/")
		return mount
	}
	return e.path[:end]
}
