package openbao

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAStoreThatCannotBeAskedIsTakenAtItsWord(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	r := startLines(t, auditOnly, "127.0.0.1:0")
	connection := dial(t, "tcp", r.address())
	for _, step := range []struct {
		line string
		want Observation
	}{
		{"response create kv1/app/x", Observation{State: Live, Operation: "create", Request: "8c00d74c-384f-7208-cbb8-472fce0681ba"}},
		{"response patch secret/data/shop/db", Observation{State: Live, Operation: "patch", Version: 3}},
		{"response delete secret/data/shop/db", Observation{State: Deleted, Operation: "delete", Request: "96f7d854-0d06-efda-5d80-5b5957499f1d"}},
		{"response update secret/undelete/shop/db", Observation{State: Live, Operation: "undelete", Request: "77b798cc-31a4-b3be-324f-e2fec6b860b4"}},
		{"response update secret/destroy/shop/db", Observation{State: Destroyed, Operation: "destroy", Request: "f96fa6f8-40ac-c470-c042-023606f13907"}},
		{"response delete secret/metadata/shop/db", Observation{State: Gone, Operation: "delete", Request: "84a8916b-272b-6142-c0b6-23b7424317d2"}},
	} {
		fmt.Fprintf(connection, "%s\n", lines[step.line])
		got := r.next(t)
		if got.State != step.want.State || got.Operation != step.want.Operation || got.Version != step.want.Version || got.Request != step.want.Request || got.At.IsZero() {
			t.Errorf("%s: %+v, want %+v", step.line, got, step.want)
		}
	}
}

func TestAVaultThatCannotBeAskedHasTheTimeOfTheLine(t *testing.T) {
	lines := samples(t, "vault-1.13.0.jsonl")
	r := startLines(t, auditOnly, "127.0.0.1:0")
	connection := dial(t, "tcp", r.address())
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
		fmt.Fprintf(connection, "%s\n", lines[step.line])
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
