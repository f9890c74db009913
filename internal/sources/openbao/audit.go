package openbao

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// entry is the kept part of an audit log line about a successful operation that may have changed a secret for its readers.
type entry struct {
	at        time.Time // by the store's clock
	received  time.Time // by the watcher's clock
	namespace string    // without slashes around it, events.RootNamespace for the root
	path      string    // of the request, in the namespace, including the mount
	operation string
	request   string
	by        string
	trace     events.TraceContext
	version   int64 // the written version; zero if the line does not have it
}

const (
	maxAhead = time.Minute // of a store's clock, relative to the watcher's
	// maxLate is the maximum delay of a line that may still name the author of a change. Log shippers may also deliver whole old files.
	maxLate = time.Hour
)

// verdict is how a line was handled. It is the label "result" of keyturn.openbao.audit.lines.
type verdict string

const (
	used      verdict = "used"      // about a possible change
	ignored   verdict = "ignored"   // irrelevant, like most lines
	malformed verdict = "malformed" // a part of an entry, or an entry whose path cannot be used
	foreign   verdict = "foreign"   // not a line of an audit log
	refused   verdict = "refused"   // from a sender without a token of the store
	dropped   verdict = "dropped"   // no room
)

// The limits of the kept parts of a line, in bytes.
const (
	maxPath        = 1024 // of a request path including its namespace, the maximum in events
	maxLabel       = 128  // of a name; longer ones are cut
	maxTraceHeader = 200
)

// operations may change secrets for their readers. In Vault Enterprise, recover restores the path from a snapshot.
var operations = []string{"create", "update", "patch", "delete", "recover"}

// record is the decoded part of an object that may be an entry. It has no fields for tokens and for the HMACs of values.
type record struct {
	entry
	typ                       string
	hasRequest                bool
	requestError, answerError string // the start of each
	status                    int64
	engine                    string
}

// entryFields are the fields of entries. Other fields of an object are searched for entries.
var entryFields = []string{"type", "time", "error", "auth", "request", "response"}

// read reads the value at a path in the object, whose names are separated by dots. It returns the result of the stream.
func (r *record) read(in *stream, path string) bool {
	switch path {
	case "auth", "request", "request.namespace", "request.headers", "response", "response.data":
		if path == "request" {
			r.hasRequest = in.token() == '{'
		}
		return in.object(func(name []byte) bool { return r.read(in, path+"."+strings.ToLower(string(name))) }) // header names have any case
	case "type":
		return in.str(maxLabel, &r.typ)
	case "time":
		var text string
		return in.str(maxLabel, &text) && (*instant)(&r.at).UnmarshalJSON(strconv.AppendQuote(nil, text)) == nil
	case "error":
		return in.str(1, &r.requestError)
	case "auth.display_name":
		return in.str(4*maxLabel, &r.by)
	case "request.id":
		return in.str(4*maxLabel, &r.request)
	case "request.operation":
		return in.str(maxLabel, &r.operation)
	case "request.mount_type":
		return in.str(maxLabel, &r.engine)
	case "request.path":
		return in.str(maxPath+1, &r.path)
	case "request.namespace.path":
		return in.str(maxPath+1, &r.namespace)
	case "request.headers.traceparent":
		return readHeader(in, &r.trace.Parent)
	case "request.headers.tracestate":
		return readHeader(in, &r.trace.State)
	case "response.data.version":
		return in.number(&r.version)
	case "response.data.error":
		return in.str(1, &r.answerError)
	case "response.data.http_status_code":
		return in.number(&r.status)
	}
	return in.skip()
}

// readHeader reads a header, if the store logs it in clear text. A header that was sent several times is ignored.
func readHeader(in *stream, out *string) bool {
	if in.token() != '[' {
		return in.skip()
	}
	in.at++
	count := 0
	ok := in.list(']', func() bool {
		count++
		return in.str(maxTraceHeader+1, out)
	})
	if count != 1 || len(*out) > maxTraceHeader {
		*out = ""
	}
	return ok
}

// isPart reports whether an incomplete record is a part of an entry.
func (r *record) isPart() bool { return r.typ == "request" || r.typ == "response" || r.hasRequest }

func (r *record) isEntry() bool { return r.hasRequest && (r.typ == "request" || r.typ == "response") }

// mayBeChange reports whether a record, which may be incomplete, may show a change for readers.
func (r *record) mayBeChange() bool {
	_, isRead := placesOf[r.engine]
	return r.typ != "request" && isRead && slices.Contains(operations, r.operation)
}

// finding returns the finding for a complete entry.
func (r *record) finding() finding {
	if !r.mayBeChange() || r.requestError != "" || r.answerError != "" || r.status >= 400 {
		return finding{verdict: ignored}
	}
	e := r.entry
	e.namespace = cmp.Or(strings.Trim(e.namespace, "/"), events.RootNamespace)
	e.request = strings.TrimSpace(events.Shorten(e.request, maxLabel)) // The ID of an event ends with it, and must not end with space.
	e.by, e.trace = events.Shorten(e.by, maxLabel), e.trace.Valid()
	if len(e.path)+len(e.namespace) > maxPath || !isPath(e.path) || !isPath(e.namespace) {
		return finding{verdict: malformed, isLost: true}
	}
	return finding{verdict: used, entry: e}
}

// instant is a time in the years 1970 to 2199. Events have times in nanoseconds since 1970, and 64 bits of them end in the year 2262. Anything else
// is decoded to zero.
type instant time.Time

func (i *instant) UnmarshalJSON(text []byte) error {
	var t time.Time
	if t.UnmarshalJSON(text) == nil && t.UTC().Year() >= 1970 && t.UTC().Year() < 2200 {
		*i = instant(t.UTC())
	}
	return nil
}
