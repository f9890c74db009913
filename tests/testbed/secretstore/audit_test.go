package secretstore

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

const traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// auditLine has the parts of a line of a store's audit log that the tests check.
type auditLine struct {
	Type    string
	Request struct {
		Operation, Path string
		Headers         map[string][]string
	}
	Response struct {
		Data struct{ Version int }
	}
}

func TestStoreWritesItsAuditLogToAFile(t *testing.T) {
	store := Run(t, Options{Log: os.Stderr})
	if err := store.AuditToFile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.AuditTraceparent(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeTraced(t, store, "db")
	log, err := os.ReadFile(store.AuditFile("file"))
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	for line := range strings.Lines(string(log)) {
		lines <- line
	}
	waitTraced(t, lines, "db")
}

func TestWhatTheStoreWritesToItsFileIsShipped(t *testing.T) {
	receiver, lines := receive(t)
	store := Run(t, Options{Log: os.Stderr})
	if err := store.AuditToFile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.AuditTraceparent(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop, err := store.ShipAudit(t.Context(), receiver.URL, "it-is-me")
	if err != nil {
		t.Fatal(err)
	}
	writeTraced(t, store, "db")
	waitTraced(t, lines, "db")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestVaultPostsNoAuditLog(t *testing.T) {
	if OpenBao() {
		t.Skip("OpenBao does")
	}
	if _, err := Start(t.Context(), Options{AuditURL: "http://" + process.Address(1)}); err == nil {
		t.Error("it has taken a URL for it")
	}
}

func TestStorePostsItsAuditLog(t *testing.T) {
	if !OpenBao() {
		t.Skip("BAO_BIN names no OpenBao")
	}
	receiver, lines := receive(t)
	store := Run(t, Options{Log: os.Stderr, AuditURL: receiver.URL, AuditToken: "it-is-me"})
	if err := store.AuditTraceparent(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeTraced(t, store, "db")
	waitTraced(t, lines, "db")

	receiver.Close()
	if _, err := store.Client().KVv2("secret").Put(t.Context(), "db", map[string]any{"color": "red"}); err != nil {
		t.Errorf("write while nobody receives: %v", err)
	}
	store.Kill()
	if err := store.Start(t.Context()); err != nil {
		t.Errorf("start while nobody receives: %v", err)
	}
}

// receive returns a server that accepts lines with the token it-is-me, and the lines.
func receive(t *testing.T) (*httptest.Server, <-chan string) {
	t.Helper()
	lines := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer it-is-me" {
			http.Error(w, "who is it?", http.StatusUnauthorized)
			return
		}
		lines <- string(body)
	}))
	t.Cleanup(server.Close)
	return server, lines
}

// writeTraced writes the first version of a secret, with a traceparent.
func writeTraced(t *testing.T, store *Store, path string) {
	t.Helper()
	client, err := store.Client().Clone()
	if err != nil {
		t.Fatal(err)
	}
	client.AddHeader("traceparent", traceParent)
	if _, err := client.KVv2("secret").Put(t.Context(), path, map[string]any{"color": "blue"}); err != nil {
		t.Fatal(err)
	}
}

// waitTraced waits for the line about the secret of writeTraced.
func waitTraced(t *testing.T, lines <-chan string, path string) {
	t.Helper()
	for {
		line := testkit.Receive(t, "the line about what was written", lines)
		var got auditLine
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("a line that is no JSON: %v", err)
		}
		if got.Type != "response" || got.Request.Path != "secret/data/"+path {
			continue
		}
		header := got.Request.Headers["traceparent"]
		if got.Request.Operation != "create" || got.Response.Data.Version != 1 || len(header) != 1 || header[0] != traceParent {
			t.Errorf("unexpected line %+v", got)
		}
		return
	}
}
