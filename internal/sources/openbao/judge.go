package openbao

import (
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// change is what an entry of the audit means.
type change struct {
	path      events.StorePath // without the store
	engine    string
	operation string
	// complete says that the entry tells everything about the state: the store need not be asked.
	complete bool
	// state is what the operation implies, for a store that cannot be asked. Zero where it implies nothing.
	state State
	// version is the version that was written, or zero.
	version int64
}

// The KV engines, as the option "version" of a mount has them.
const (
	kvUnknown = 0
	kvV1      = 1
	kvV2      = 2
)

// judge says what an entry means, given the version of its KV engine. It is false for what changes nothing that is read.
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

// judgeKV fills in the change and gives the path of the secret, empty for what is no change.
func (c *change) judgeKV(e entry, rest string, kv int) string {
	verb, path, _ := strings.Cut(rest, "/")
	switch {
	case kv == kvV1:
		return c.judgePlain(e, rest)
	case verb == "data" && e.version > 0:
		c.complete, c.state, c.version = true, Live, e.version
	case verb == "data" && e.operation == "delete":
		c.state = Deleted
	case verb == "data" && kv == kvV2:
		// A write that tells no version: see what is there.
	case verb == "metadata" && path != "":
		if e.operation != "delete" {
			return ""
		}
		c.state = Gone
	// KV v2 has no "create" for these, so that it is a secret of KV v1 in a folder with such a name.
	case verb == "delete" && e.operation == "update":
		c.state, c.operation = Deleted, "delete"
	case verb == "undelete" && e.operation == "update":
		c.state, c.operation = Live, "undelete"
	case verb == "destroy" && e.operation == "update":
		c.state, c.operation = Destroyed, "destroy"
	case kv == kvV2:
		return ""
	default:
		return c.judgePlain(e, rest)
	}
	return path
}

// judgePlain is judgeKV for KV v1, of which nothing can be asked but values.
func (c *change) judgePlain(e entry, rest string) string {
	c.complete, c.state = true, Live
	if e.operation == "delete" {
		c.state = Gone
	}
	return rest
}

// roles are the paths of static roles in an engine: where they are rotated, where they are, and where their secret is read.
type roles struct{ rotate, list, secret string }

func rolesOf(engine string) roles {
	if engine == events.EngineLDAP {
		return roles{rotate: "rotate-role", list: "static-role", secret: "static-cred"}
	}
	return roles{rotate: "rotate-role", list: "static-roles", secret: "static-creds"}
}

// judgeRole is judgeKV for static roles.
func (c *change) judgeRole(e entry, rest string) string {
	names := rolesOf(e.engine)
	verb, role, _ := strings.Cut(rest, "/")
	switch {
	case role == "":
		return ""
	case verb == names.rotate && e.operation != "delete":
		c.state, c.operation = Live, "rotate"
	case verb == names.list && e.operation == "delete":
		c.state = Gone
	case verb == names.list && e.operation == "create":
		c.state = Live
	case verb == names.list:
		// It may have been rotated by that or not.
	default:
		return ""
	}
	return names.secret + "/" + role
}

// guessMount is the mount of a request path where neither the line nor the store tells it: what is before the first part
// that the engine knows, or else the first part.
func guessMount(e entry) string {
	marks := []string{"/data/", "/metadata/", "/delete/", "/undelete/", "/destroy/"}
	if e.engine != events.EngineKV {
		names := rolesOf(e.engine)
		marks = []string{"/" + names.rotate + "/", "/" + names.list + "/"}
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
