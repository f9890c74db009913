package openbao

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/keyturn/keyturn/internal/events"
)

// entry is what is kept of a line of the audit log: that something was done successfully that may have changed what a
// reader of a secret sees.
type entry struct {
	at        time.Time // by the store's clock
	received  time.Time // by ours
	engine    string
	namespace string // without slashes around it, events.RootNamespace for the root
	mount     string // without slashes around it; empty where the store does not audit it (Vault before 1.15)
	path      string // of the request, in the namespace, with the mount
	operation string
	request   string
	by        string
	trace     events.TraceContext
	version   int64     // the version that was written; zero where the line does not tell
	created   time.Time // when that was
	vouched   bool      // the sender of the line was authenticated
}

// verdict is what became of a line. It is the label "result" of keyturn.openbao.audit.lines.
type verdict string

const (
	used      verdict = "used"      // it may be a change
	ignored   verdict = "ignored"   // it is of no interest: what most lines are
	malformed verdict = "malformed" // it is not a line of an audit log
	refused   verdict = "refused"   // its sender may not send
	dropped   verdict = "dropped"   // there was no room for it
)

// The marks of a line that is of interest. They are looked for before a line is parsed, for most lines are of reads. The
// stores write JSON without spaces.
var (
	responseMark   = []byte(`"type":"response"`)
	engineMarks    = [][]byte{[]byte(`"mount_type":"kv"`), []byte(`"mount_type":"database"`), []byte(`"mount_type":"ldap"`)}
	operationMarks = [][]byte{[]byte(`"operation":"create"`), []byte(`"operation":"update"`), []byte(`"operation":"patch"`), []byte(`"operation":"delete"`)}
)

// auditLine is what is read of a line. Values, tokens and their HMACs have no field.
type auditLine struct {
	Time  instant `json:"time"`
	Type  string  `json:"type"`
	Error filled  `json:"error"`
	Auth  struct {
		DisplayName string `json:"display_name"`
	} `json:"auth"`
	Request *struct {
		ID         string `json:"id"`
		Operation  string `json:"operation"`
		MountPoint string `json:"mount_point"`
		MountType  string `json:"mount_type"`
		Namespace  struct {
			Path string `json:"path"`
		} `json:"namespace"`
		Path    string              `json:"path"`
		Headers map[string][]string `json:"headers"`
	} `json:"request"`
	Response struct {
		Data struct {
			Version     integer `json:"version"`
			CreatedTime instant `json:"created_time"`
			Error       filled  `json:"error"`
			Status      integer `json:"http_status_code"`
		} `json:"data"`
	} `json:"response"`
}

// decodeLine reads one line of an audit log. The entry is set where the verdict is used, and holds nothing of the line's memory.
func decodeLine(line []byte) (entry, verdict) {
	// A line may have a prefix: an option of the audit device.
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
	e := entry{
		at:        time.Time(l.Time),
		engine:    l.Request.MountType,
		namespace: strings.Trim(l.Request.Namespace.Path, "/"),
		path:      l.Request.Path,
		operation: l.Request.Operation,
		request:   label(l.Request.ID),
		by:        label(l.Auth.DisplayName),
		trace:     traceOf(l.Request.Headers),
	}
	e.mount = mountOf(l.Request.MountPoint, e.namespace, e.path)
	if e.namespace == "" {
		e.namespace = events.RootNamespace
	}
	switch e.engine {
	case events.EngineKV, events.EngineDatabase, events.EngineLDAP:
	default:
		return entry{}, ignored
	}
	switch e.operation {
	case "create", "update", "patch", "delete":
	default:
		return entry{}, ignored
	}
	if len(e.path)+len(e.namespace) > maxPath || !isPath(e.path) || !isPath(e.namespace) {
		return entry{}, malformed
	}
	if version := int64(l.Response.Data.Version); version > 0 {
		e.version, e.created = version, time.Time(l.Response.Data.CreatedTime)
	}
	return e, used
}

// mountOf is the mount of a request path. OpenBao writes the mount point with the namespace in front, and the path without it.
func mountOf(point, namespace, path string) string {
	point = strings.Trim(point, "/")
	if inner, ok := strings.CutPrefix(point, namespace+"/"); ok && namespace != "" && strings.HasPrefix(path, inner+"/") {
		return inner
	}
	if point != "" && strings.HasPrefix(path, point+"/") {
		return point
	}
	return ""
}

// traceOf is the trace context that the writer sent, where the store audits the header in clear.
func traceOf(headers map[string][]string) events.TraceContext {
	var sent events.TraceContext
	for name, values := range headers {
		switch {
		case len(values) != 1 || len(values[0]) > maxMessage:
		case strings.EqualFold(name, "traceparent"):
			sent.Parent = values[0]
		case strings.EqualFold(name, "tracestate"):
			sent.State = values[0]
		}
	}
	// What is not valid is not extracted.
	return events.TraceFrom(sent.Context(context.Background()))
}

// maxPath is how long the path of a request may be, in bytes, with its namespace. Events can have no longer ones.
const maxPath = 1024

// maxLabel is how much of a name of the line is kept, in bytes.
const maxLabel = 128

// label makes a text from outside fit to be shown.
func label(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
	if len(text) > maxLabel {
		text = strings.ToValidUTF8(text[:maxLabel], "")
	}
	return text
}

// promising tells whether a line, or the beginning of a long one, may be of interest. The stores write what is looked for before
// anything that can be long.
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

// instant is a time, or zero for what is none: the store HMACs an empty text.
type instant time.Time

func (i *instant) UnmarshalJSON(text []byte) error {
	var t time.Time
	if t.UnmarshalJSON(text) == nil && !t.IsZero() {
		*i = instant(t.UTC())
	}
	return nil
}

// integer is a whole number that is not negative, or zero for what is none.
type integer int64

func (i *integer) UnmarshalJSON(text []byte) error {
	var n int64
	if json.Unmarshal(text, &n) == nil && n > 0 {
		*i = integer(n)
	}
	return nil
}

// filled tells that there is something, whatever it is.
type filled bool

func (f *filled) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `null`, `""`, `false`:
	default:
		*f = true
	}
	return nil
}
