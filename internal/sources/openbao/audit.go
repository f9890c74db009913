package openbao

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// entry is the part of an audit log line that is kept. It is a successful operation that may have changed what readers of a secret see.
type entry struct {
	at        time.Time // by the store's clock
	received  time.Time // by our clock
	namespace string    // without slashes around it, events.RootNamespace for the root
	path      string    // of the request, in the namespace, including the mount
	operation string
	request   string
	by        string
	trace     events.TraceContext
	version   int64 // the version that was written; zero if the line does not say
}

const (
	// maxAhead is how far the clock of a store may be ahead of ours.
	maxAhead = time.Minute
	// maxLate is how late a line may arrive and still say who made a change. Log shippers deliver what was written while the watcher was down, but
	// also whole old files.
	maxLate = time.Hour
)

// isLate reports whether the line arrived so late that it does not say who made the change that is read.
func (e *entry) isLate() bool { return e.received.Sub(e.at) > maxLate }

// receiveAt records when the line was received, by our clock. It drops a time that is later than the store's clock can show: the state of a secret in
// KV v1 would count as the latest forever. Times before 1970 are not even decoded.
func (e *entry) receiveAt(now time.Time) {
	e.received = now
	if e.at.IsZero() || e.at.After(now.Add(maxAhead)) {
		e.at = now
	}
}

// verdict is how a line was handled. It is the label "result" of keyturn.openbao.audit.lines.
type verdict string

const (
	used      verdict = "used"      // about a possible change
	ignored   verdict = "ignored"   // of no interest, as most lines are
	malformed verdict = "malformed" // not a line of an audit log
	refused   verdict = "refused"   // from a sender without a token of the store
	dropped   verdict = "dropped"   // no room
)

// The limits of the kept parts of a line, in bytes.
const (
	// maxPath is the maximum length of a request path including its namespace. Events cannot name longer paths.
	maxPath = 1024
	// maxLabel is the maximum length of a name. Longer ones are cut.
	maxLabel = 128
	// maxTraceHeader is the maximum length of a trace header.
	maxTraceHeader = 200
)

// The marks of a relevant line. They are searched for before a line is parsed, because most lines are about reads. The stores write JSON without
// spaces.
var (
	responseMark   = []byte(`"type":"response"`)
	engineMarks    = [][]byte{[]byte(`"mount_type":"kv"`), []byte(`"mount_type":"database"`), []byte(`"mount_type":"ldap"`)}
	operationMarks = [][]byte{
		[]byte(`"operation":"create"`), []byte(`"operation":"update"`), []byte(`"operation":"patch"`), []byte(`"operation":"delete"`),
		[]byte(`"operation":"recover"`), // Vault Enterprise writes what a snapshot has at the path.
	}
)

// auditLine is the part of a line that is decoded. Tokens and the HMACs of values have no field.
type auditLine struct {
	Time  instant `json:"time"`
	Type  string  `json:"type"`
	Error filled  `json:"error"`
	Auth  struct {
		DisplayName string `json:"display_name"`
	} `json:"auth"`
	Request *struct {
		ID        string `json:"id"`
		Operation string `json:"operation"`
		MountType string `json:"mount_type"`
		Namespace struct {
			Path string `json:"path"`
		} `json:"namespace"`
		Path    string              `json:"path"`
		Headers map[string][]string `json:"headers"`
	} `json:"request"`
	Response struct {
		Data struct {
			Version integer `json:"version"`
			Error   filled  `json:"error"`
			Status  integer `json:"http_status_code"`
		} `json:"data"`
	} `json:"response"`
}

// decodeLine decodes one line of an audit log. The entry is set only if the verdict is used, and does not alias the line's memory.
func decodeLine(line []byte) (entry, verdict) {
	// The audit device has an option that adds a prefix to each line.
	start := bytes.IndexByte(line, '{')
	if start < 0 {
		return entry{}, malformed
	}
	line = line[start:]
	if !promising(line) {
		return entry{}, ignored
	}
	var l auditLine
	if err := json.Unmarshal(line, &l); err != nil {
		return entry{}, malformed
	}
	if l.Type != "response" || l.Request == nil || bool(l.Error) || bool(l.Response.Data.Error) || l.Response.Data.Status >= 400 {
		return entry{}, ignored
	}
	switch l.Request.MountType {
	case events.EngineKV, events.EngineDatabase, events.EngineLDAP:
	default:
		return entry{}, ignored
	}
	switch l.Request.Operation {
	case "create", "update", "patch", "delete", "recover":
	default:
		return entry{}, ignored
	}
	e := entry{
		at:        time.Time(l.Time),
		namespace: cmp.Or(strings.Trim(l.Request.Namespace.Path, "/"), events.RootNamespace),
		path:      l.Request.Path,
		operation: l.Request.Operation,
		request:   strings.TrimSpace(events.Shorten(l.Request.ID, maxLabel)), // the ID of an event ends with it, and has no space around it
		by:        events.Shorten(l.Auth.DisplayName, maxLabel),
		trace:     traceOf(l.Request.Headers),
		version:   int64(l.Response.Data.Version),
	}
	if len(e.path)+len(e.namespace) > maxPath || !isPath(e.path) || !isPath(e.namespace) {
		return entry{}, malformed
	}
	return e, used
}

// traceOf returns the trace context that the writer sent, if the store logs that header in clear text.
func traceOf(headers map[string][]string) events.TraceContext {
	var sent events.TraceContext
	for name, values := range headers {
		switch {
		case len(values) != 1 || len(values[0]) > maxTraceHeader:
		case strings.EqualFold(name, "traceparent"):
			sent.Parent = values[0]
		case strings.EqualFold(name, "tracestate"):
			sent.State = values[0]
		}
	}
	return sent.Valid()
}

// promising reports whether a line, or the start of a long one, may be relevant. The stores write all marks before any field that can be long.
func promising(line []byte) bool {
	return bytes.Contains(line, responseMark) && containsAny(line, engineMarks) && containsAny(line, operationMarks)
}

func containsAny(line []byte, marks [][]byte) bool {
	for _, mark := range marks {
		if bytes.Contains(line, mark) {
			return true
		}
	}
	return false
}
