package secretstore

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

func TestStoreWritesItsAuditLogToASocket(t *testing.T) {
	store := Run(t, Options{Log: os.Stderr})
	if err := store.AuditTraceparent(t.Context()); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, network, address string }{
		{name: "TCP", network: "tcp", address: process.Address(0)},
		// The path of a folder of the test would be too long.
		{name: "Unix", network: "unix", address: filepath.Join(store.Dir(), "audit.sock")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			listener, err := net.Listen(test.network, test.address)
			if err != nil {
				t.Fatal(err)
			}
			lines := receive(t, listener)
			if err := store.AuditSocket(t.Context(), "socket", test.network, listener.Addr().String()); err != nil {
				t.Fatal(err)
			}
			writeTraced(t, store, test.name)
			waitTraced(t, lines, test.name)
			if err := store.DisableAudit(t.Context(), "socket"); err != nil {
				t.Error(err)
			}
		})
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
	lines := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer it-is-me" {
			http.Error(w, "who is it?", http.StatusUnauthorized)
			return
		}
		lines <- string(body)
	}))
	defer receiver.Close()
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

// receive accepts connections and returns the lines that they send, until the test ends.
func receive(t *testing.T, listener net.Listener) <-chan string {
	t.Helper()
	lines := make(chan string, 100)
	var readers sync.WaitGroup
	t.Cleanup(readers.Wait)
	context.AfterFunc(t.Context(), func() { listener.Close() })
	readers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(t.Context(), func() { conn.Close() })
			readers.Go(func() {
				for scanner := bufio.NewScanner(conn); scanner.Scan(); {
					lines <- scanner.Text()
				}
			})
		}
	})
	return lines
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
