package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"testing"
)

// Log is the log of a program that runs in the process of a test. It is safe for concurrent use. The methods that look for a server want the
// program's own format, lines of JSON.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns what was logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Logger returns a logger that writes every level to the log, as text.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Addr returns the address on which a server of the program listens, such as health, or "" if it does not yet.
func (l *Log) Addr(t testing.TB, server string) string {
	t.Helper()
	for line := range bytes.Lines([]byte(l.String())) {
		var fields struct{ Msg, Component, Addr string }
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("a line of the log is not JSON: %q: %v", line, err)
		}
		if fields.Msg == "listening" && fields.Component == server {
			return fields.Addr
		}
	}
	return ""
}

// AwaitReady waits until the program is ready, and returns its checks, one on each line.
func (l *Log) AwaitReady(t testing.TB) (checks string) {
	t.Helper()
	return l.AwaitReadyAt(t, "health")
}

// AwaitReadyAt is like AwaitReady, for a program whose probes are served by the given server.
func (l *Log) AwaitReadyAt(t testing.TB, server string) (checks string) {
	t.Helper()
	Await(t, "the program is ready", func(ctx context.Context) bool {
		addr := l.Addr(t, server)
		if addr == "" {
			return false
		}
		code, body, err := Get(ctx, "http://"+addr+"/readyz")
		checks = body
		return err == nil && code == http.StatusOK
	}, l.String)
	return checks
}
