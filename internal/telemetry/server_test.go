package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// client keeps no connection, so that no goroutine outlives a test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// get asks a server of the test.
func get(t testing.TB, url string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

func TestServerListensUntilItIsStopped(t *testing.T) {
	var out bytes.Buffer
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	ctx, cancel := context.WithCancel(t.Context())
	server, err := Serve(ctx, NewLogger(&out, DefaultOptions()), "127.0.0.1:0", handler)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // which bounds the start only
	if _, port, _ := net.SplitHostPort(server.Addr); port == "0" || port == "" {
		t.Errorf("address is %q, without the port that was bound", server.Addr)
	}
	if code, body := get(t, "http://"+server.Addr); code != http.StatusOK || body != "here" {
		t.Errorf("answer is %d %q", code, body)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Errorf("stopping: %v", err)
	}
	lines := decodeLines(t, out.Bytes())
	if len(lines) != 1 || lines[0]["msg"] != "listening" || lines[0]["addr"] != server.Addr {
		t.Errorf("log is %v, want one line with addr %q", lines, server.Addr)
	}
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Addr); err == nil {
		conn.Close()
		t.Error("still listening after it was stopped")
	}
}

func TestServerWithoutAddressIsOff(t *testing.T) {
	server, err := Serve(t.Context(), slog.New(slog.DiscardHandler), "", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if server.Addr != "" {
		t.Errorf("listens on %q", server.Addr)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Errorf("stopping: %v", err)
	}
}

func TestServerRefusesAnAddressInUse(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	first, err := Serve(t.Context(), logger, "127.0.0.1:0", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Serve(t.Context(), logger, first.Addr, http.NotFoundHandler()); err == nil {
		t.Errorf("two servers listen on %s", second.Addr)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Errorf("stopping: %v", err)
	}
}

func TestServerStopCutsOffWhoDoesNotFinish(t *testing.T) {
	began := make(chan struct{})
	server, err := Serve(t.Context(), slog.New(slog.DiscardHandler), "127.0.0.1:0",
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(began)
			<-r.Context().Done()
		}))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.Addr, nil)
		if err != nil {
			return
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
		}
	}()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := server.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want the deadline", err)
	}
	<-asked
}
