package openbao

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
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
	maxAhead = time.Minute // of a store's clock
	// maxLate is how late a line may arrive and still say who made a change. Log shippers may also deliver whole old files.
	maxLate = time.Hour
)

// receiveAt records when the line was received, by our clock. It drops a time that is later than the store's clock can show: the state of a secret in
// KV v1 would count as the latest forever.
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
	maxPath        = 1024 // of a request path including its namespace; events cannot name longer paths
	maxLabel       = 128  // of a name; longer ones are cut
	maxTraceHeader = 200
)

// What a relevant line has. It is searched for before a line is parsed, because most lines are about reads.
var (
	responseMark = []byte(`"type":"response"`)
	engines      = []string{events.EngineKV, events.EngineDatabase, events.EngineLDAP}
	// Vault Enterprise recovers what a snapshot has at the path.
	operations = []string{"create", "update", "patch", "delete", "recover"}
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
	if !slices.Contains(engines, l.Request.MountType) || !slices.Contains(operations, l.Request.Operation) {
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

// promising reports whether a line, or the start of a long one, may be relevant. The stores write JSON without spaces, and these fields before any
// that can be long.
func promising(line []byte) bool {
	has := func(field string, values []string) bool {
		return slices.ContainsFunc(values, func(value string) bool { return bytes.Contains(line, []byte(`"`+field+`":"`+value+`"`)) })
	}
	return bytes.Contains(line, responseMark) && has("mount_type", engines) && has("operation", operations)
}
