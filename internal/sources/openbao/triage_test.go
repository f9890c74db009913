package openbao

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

// auditOnly configures a store that cannot be asked.
const auditOnly = "stores: [{name: main, address: 'https://Bao.Example:8200/', aliases: ['http://bao']}]"

// send posts a line to the receiver.
func (r *rig) send(t *testing.T, line []byte) {
	t.Helper()
	url := "http://" + r.address() + "/v1/audit/main"
	if got := post(t, newClientOf(t, nil), url, "Bearer "+goodToken, bytes.NewReader(line)); got != http.StatusNoContent {
		t.Fatalf("status %d, want 204", got)
	}
}

func TestAStoreThatCannotBeAskedIsTakenAtItsWord(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	r := startReceiver(t, auditOnly, nil)
	for _, step := range []struct {
		line string
		want Observation
	}{
		{"response create kv1/app/x", Observation{State: Live, Operation: "create", Request: "8c00d74c-384f-7208-cbb8-472fce0681ba"}},
		{"response patch secret/data/shop/db", Observation{State: Live, Operation: "patch", Version: 3}},
		{"response delete secret/data/shop/db", Observation{State: Deleted, Operation: "delete", Request: "96f7d854-0d06-efda-5d80-5b5957499f1d"}},
		// The lines have HMACs of the versions, any of which may be the current one.
		{line: "response update secret/undelete/shop/db"},
		{line: "response update secret/destroy/shop/db"},
		{"response delete secret/metadata/shop/db", Observation{State: Gone, Operation: "delete", Request: "84a8916b-272b-6142-c0b6-23b7424317d2"}},
	} {
		r.send(t, lines[step.line])
		if step.want.State == 0 {
			continue
		}
		got := r.next(t)
		if got.State != step.want.State || got.Operation != step.want.Operation || got.Version != step.want.Version || got.Request != step.want.Request || got.At.IsZero() {
			t.Errorf("%s: %+v, want %+v", step.line, got, step.want)
		}
	}
}

func TestAVaultThatCannotBeAskedHasTheTimeOfTheLine(t *testing.T) {
	lines := samples(t, "vault-1.13.0.jsonl")
	r := startReceiver(t, auditOnly, nil)
	for _, step := range []struct {
		line, at string
		want     Observation
	}{
		{
			"response create secret/data/shop/db", "2026-11-21T20:09:37.618263588Z",
			Observation{State: Live, Operation: "create", Version: 1, Request: "2f32fae4-25a8-8946-dec8-40c8fe16105b"},
		},
		{
			"response update secret/data/shop/db", "2026-11-21T20:09:37.623483902Z",
			Observation{State: Live, Operation: "update", Version: 2, Request: "b8ccdfd8-bc74-7b71-8c93-8321443ee57d"},
		},
		{
			"response delete secret/data/shop/db", "2026-11-21T20:09:37.625466072Z",
			Observation{State: Deleted, Operation: "delete", Request: "a9c71ec8-1cf8-7847-cdc8-291a87906416"},
		},
	} {
		r.send(t, lines[step.line])
		want := step.want
		want.Path = events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}
		want.Servers, want.Engine, want.By, want.At = []string{"https://bao.example:8200", "http://bao"}, events.EngineKV, "root", at(t, step.at)
		got := r.next(t)
		got.Received, got.Trace = time.Time{}, events.TraceContext{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.line, diff)
		}
	}
}

func TestDrain_ProcessesWhatIsSpooledAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	spool := make(chan entry, 3)
	for _, path := range []string{"a", "b", "c"} {
		spool <- entry{path: path}
	}
	var got []string
	drain(ctx, spool, func(_ context.Context, e entry) { got = append(got, e.path) })
	if strings.Join(got, "") != "abc" {
		t.Errorf("processed %v", got)
	}
}

func TestVersionsThatALineNames(t *testing.T) {
	line := func(verb, versions string) string {
		return lineOf(`"operation":"update","mount_point":"secret/","mount_type":"kv","path":"secret/`+verb+`/db","data":{"versions":`+versions+`}`, "", "")
	}
	tests := []struct {
		name, line string
		want       []int64
		state      State
	}{
		{name: "an undeletion", line: line("undelete", "[3,7]"), want: []int64{3, 7}, state: Live},
		{name: "a deletion", line: line("delete", "[7]"), want: []int64{7}, state: Deleted},
		{name: "a destruction", line: line("destroy", "[7]"), want: []int64{7}, state: Destroyed},
		{name: "HMACs", line: line("destroy", `["hmac-sha256:0"]`)},
		{name: "a number and an HMAC", line: line("destroy", `[7,"hmac-sha256:0"]`)},
		{name: "no list", line: line("destroy", `{"7":true}`)},
		{name: "none", line: line("destroy", `[]`)},
		{name: "a number that is no version", line: line("destroy", `[-7]`)},
		{name: "more than a secret has", line: line("destroy", "[1"+strings.Repeat(",1", maxNamed)+"]")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, result := decodeLine([]byte(test.line))
			if result != used {
				t.Fatal(result)
			}
			var got []Observation
			out := &outlet{sink: func(o Observation) bool { got = append(got, o); return true }}
			(&guesser{origin: origin{store: "main"}, outlet: out, learned: map[mountName]bool{}, newcomers: &newcomers{}}).process(t.Context(), e)
			if test.want == nil {
				if len(got) > 0 {
					t.Errorf("%+v was observed", got)
				}
				return
			}
			if len(got) != 1 || got[0].State != test.state || !slices.Equal(got[0].Versions, test.want) {
				t.Errorf("%+v, want %v of the versions %v", got, test.state, test.want)
			}
		})
	}
}

func TestTheValuesOfASecretAreNotTakenForVersions(t *testing.T) {
	for _, path := range []string{"secret/versions", "secret/data/db"} {
		e, result := decodeLine([]byte(lineOf(`"operation":"update","mount_type":"kv","path":"`+path+`","data":{"versions":[7]}`, "", "")))
		if result != used || e.versions != nil {
			t.Errorf("%s: %s, versions %v", path, result, e.versions)
		}
	}
}

func TestAFalseLineDoesNotHideAMountOfKVv1(t *testing.T) {
	line := func(path, version string) string {
		return lineOf(`"operation":"update","mount_point":"kv/","mount_type":"kv","path":"kv/`+path+`"`, `"data":{`+version+`}`, "")
	}
	var got []string
	out := &outlet{sink: func(o Observation) bool { got = append(got, o.Path.Path); return true }}
	g := &guesser{origin: origin{store: "main"}, outlet: out, learned: map[mountName]bool{}, newcomers: &newcomers{}}
	for _, step := range []struct{ name, line, want string }{
		{name: "one of KV v2", line: line("data/app", `"version":7`), want: "app"},
		{name: "the configuration of KV v2", line: line("config", "")},
		{name: "one that KV v2 does not have", line: line("app/db", ""), want: "app/db"},
		{name: "one that both have", line: line("data/db", ""), want: "data/db"},
	} {
		got = nil
		e, result := decodeLine([]byte(step.line))
		if result != used {
			t.Fatal(result)
		}
		g.process(t.Context(), e)
		if strings.Join(got, " ") != step.want {
			t.Errorf("%s: observed %q, want %q", step.name, got, step.want)
		}
	}
}
