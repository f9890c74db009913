package openbao

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339Nano, text)
	testkit.Must(t, err)
	return parsed
}

func TestLinesOfARealAuditLog(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	entryOf := func(path, operation, when, request string, version int64) entry {
		return entry{
			at: at(t, "2026-11-20T11:03:"+when+"Z"), namespace: events.RootNamespace, path: path, operation: operation, request: request, by: "token", version: version,
		}
	}
	const db = "secret/data/shop/db"
	traced := entryOf(db, "update", "06.591188034", "8aba8637-4fa5-4636-f1d2-44256ce4489e", 2)
	traced.trace = events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	inTeam := entryOf("kv/data/x/y", "create", "07.437721963", "09b083be-f9c2-6f1d-4d65-c02800d0602f", 1)
	inTeam.namespace = "team1"
	for _, test := range []struct {
		name, line string
		entry      entry  // zero: the line is ignored
		mount      string // of the entry, in KV v2; empty: secret
		means      change // of the entry there; zero: it means nothing
	}{
		{
			name: "the first write of a secret is a create", line: "response create secret/data/shop/db",
			entry: entryOf(db, "create", "06.579980109", "b79fa2e1-43fe-05a8-6d69-56e45ee5f084", 1), means: change{operation: "create", state: Live, version: 1},
		},
		{
			name: "a write with an audited traceparent has its trace", line: "response update secret/data/shop/db",
			entry: traced, means: change{operation: "update", state: Live, version: 2},
		},
		{
			name: "a delete has no version", line: "response delete secret/data/shop/db",
			entry: entryOf(db, "delete", "06.813062488", "96f7d854-0d06-efda-5d80-5b5957499f1d", 0), means: change{operation: "delete", state: Deleted, isDeletion: true},
		},
		{
			name: "a write of metadata changes nothing that is read", line: "response update secret/metadata/shop/db",
			entry: entryOf("secret/metadata/shop/db", "update", "07.026210391", "310eb9f8-973f-a6a3-bd33-a698af78350c", 0),
		},
		{
			name: "a delete of metadata", line: "response delete secret/metadata/shop/db",
			entry: entryOf("secret/metadata/shop/db", "delete", "07.094849453", "84a8916b-272b-6142-c0b6-23b7424317d2", 0), means: change{operation: "delete", state: Gone},
		},
		{
			name: "a write in another namespace, whose mount point has the namespace in it", line: "response create kv/data/x/y",
			entry: inTeam, mount: "kv", means: change{path: "x/y", operation: "create", state: Live, version: 1},
		},
		{name: "a request is not a response", line: "request create secret/data/shop/db"},
		{name: "what the system does is no change", line: "response read sys/internal/ui/mounts/secret"},
	} {
		t.Run(test.name, func(t *testing.T) {
			line := lines[test.line]
			if line == nil {
				t.Fatal("there is no such line")
			}
			got, result := decodeLine(t, line)
			wantEqual(t, "entry", test.entry, got)
			if test.entry == (entry{}) {
				if result != ignored {
					t.Errorf("%s, want it ignored", result)
				}
				return
			}
			means, ok := judge(&got, engineMount{namespace: got.namespace, path: orElse(test.mount, "secret"), engine: events.EngineKV})
			if isChange := test.means != (change{}); result != used || ok != isChange {
				t.Errorf("%s, judged as %t, %+v", result, ok, means)
			} else if isChange {
				test.means.path = orElse(test.means.path, "shop/db")
			}
			wantEqual(t, "change", test.means, means)
		})
	}
}

// lineOf returns a line of an audit log as a store writes it.
func lineOf(request, response, rest string) string {
	return fmt.Sprintf(`{"time":"2026-11-20T11:03:06Z","type":"response","auth":{"display_name":"token"},"request":{"id":"1",%s},"response":{%s}%s}`, request, response, rest)
}

func TestLinesThatAreNotUsed(t *testing.T) {
	const (
		write   = `"operation":"update","mount_point":"secret/","mount_type":"kv","path":"secret/data/db"`
		version = `"data":{"version":2,"created_time":"2026-11-20T11:03:06Z"}`
	)
	for _, test := range []struct {
		name, line string
		want       verdict
	}{
		{name: "as it is used", line: lineOf(write, version, ""), want: used},
		{name: "a secret of KV v1 was recovered from a snapshot", line: lineOf(`"operation":"recover","mount_point":"kv/","mount_type":"kv","path":"kv/db"`, "", ""), want: used},
		{name: "without a namespace, a time and a display name", line: `{"type":"response","request":{` + write + `}}`, want: used},
		{name: "the request failed", line: lineOf(write, `"mount_type":"kv"`, `,"error":"check-and-set parameter did not match"`), want: ignored},
		{name: "the answer is an error", line: lineOf(write, `"data":{"error":"hmac-sha256:0"}`, ""), want: ignored},
		{name: "another engine that mentions one of ours", line: lineOf(`"operation":"update","mount_type":"pki","path":"pki/x","data":{"mount_type":"kv"}`, "", ""), want: ignored},
		{name: "no request", line: `{"type":"response","response":{"mount_type":"kv"},"x":{"operation":"update"}}`, want: foreign},
		{name: "no JSON at all", line: "GET / HTTP/1.1", want: foreign},
		{name: "half a line", line: lineOf(write, version, "")[:200], want: malformed},
		{name: "a path that leads elsewhere", line: strings.Replace(lineOf(write, version, ""), "secret/data/db", "secret/data/../../sys/seal", 1), want: malformed},
		{name: "a path that ends a line", line: strings.Replace(lineOf(write, version, ""), "data/db", `data/d\nb`, 1), want: malformed},
		{name: "a path that is too long", line: strings.Replace(lineOf(write, version, ""), "data/db", "data/"+strings.Repeat("x", maxPath), 1), want: malformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, got := decodeLine(t, []byte(test.line)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatALineSaysOfWhoDidItIsMadeFitToBeShown(t *testing.T) {
	const write = `"operation":"update","mount_point":"secret/","mount_type":"kv","path":"secret/data/db"`
	for _, test := range []struct {
		name, line, by string
		trace          events.TraceContext
	}{
		{name: "a name with an end of line", line: strings.Replace(lineOf(write, "", ""), `"token"`, `"a\nb"`, 1), by: "a b"},
		{name: "a name that is long", line: strings.Replace(lineOf(write, "", ""), `"token"`, `"`+strings.Repeat("é", 200)+`"`, 1), by: strings.Repeat("é", maxLabel/2)},
		{
			name: "the header in another case, with a state",
			line: lineOf(write+`,"headers":{"TraceParent":["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"],"tracestate":["vendor=1"]}`, "", ""),
			by:   "token", trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", State: "vendor=1"},
		},
		{name: "a header that was made an HMAC of", line: lineOf(write+`,"headers":{"traceparent":["hmac-sha256:0"]}`, "", ""), by: "token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, result := decodeLine(t, []byte(test.line))
			if result != used || got.by != test.by || got.trace != test.trace {
				t.Errorf("%s, by %q in %+v; want by %q in %+v", result, got.by, got.trace, test.by, test.trace)
			}
		})
	}
}

func TestAnEntryHoldsNothingOfWhatIsSecretInALine(t *testing.T) {
	const canary = "canary-5d1e"
	line := `{"time":"2026-11-20T11:03:06Z","type":"response","auth":{"client_token":"canary-5d1e","accessor":"canary-5d1e","display_name":"token"},` +
		`"request":{"id":"1","operation":"update","mount_point":"secret/","mount_type":"kv","path":"secret/data/db","client_token":"canary-5d1e",` +
		`"data":{"data":{"password":"canary-5d1e"}},"headers":{"cookie":["canary-5d1e"]}},"response":{"data":{"version":2,"password":"canary-5d1e"}}}`
	e, result := decodeLine(t, []byte(line))
	if result != used || strings.Contains(fmt.Sprintf("%+v", e), canary) {
		t.Errorf("%s: %+v", result, e)
	}
}
