package telemetry

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// client keeps no connection, so that no goroutine outlives a test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// get asks a server of the test.
func get(t testing.TB, client *http.Client, url string) (body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	testkit.Must(t, err)
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return string(content), err
}

// start serves on a free port and returns its address, and how to end it.
func start(t *testing.T, o Options) (addr string, stop func() error) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, o) }()
	return listener.Addr().String(), func() error {
		cancel()
		return <-ended
	}
}

func sayHere(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }

func TestServeAnswersUntilTheContextEnds(t *testing.T) {
	addr, stop := start(t, Options{Handler: http.HandlerFunc(sayHere), Drain: time.Minute})
	if body, err := get(t, client, "http://"+addr); body != "here" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	if err := stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr); err == nil {
		conn.Close()
		t.Error("still listening after it was stopped")
	}
}

func TestServeAnswersOverTLS(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS() // which makes a certificate, and a client that trusts it
	defer certified.Close()
	var log bytes.Buffer
	addr, stop := start(t, Options{
		Handler: http.HandlerFunc(sayHere), TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates},
		Logger: slog.New(slog.NewTextHandler(&log, nil)), ErrorLevel: slog.LevelWarn,
	})
	trusting := certified.Client()
	if body, err := get(t, trusting, "https://"+addr); body != "here" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	trusting.CloseIdleConnections()
	if _, err := get(t, client, "https://"+addr); err == nil {
		t.Error("a client that does not trust the certificate got an answer")
	}
	if err := stop(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stopping: %v", err)
	}
}

func TestServeCutsOffRequestsThatTakeTooLong(t *testing.T) {
	began := make(chan struct{})
	addr, stop := start(t, Options{Drain: 20 * time.Millisecond, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	})})
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if _, err := get(t, client, "http://"+addr); err == nil {
			t.Error("the request was answered, want it to be cut off")
		}
	}()
	<-began
	if err := stop(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
	<-asked
}

func TestServeReportsAServerThatFailed(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	listener.Close()
	err = Serve(t.Context(), listener, Options{Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "serving http at 127.0.0.1:") {
		t.Errorf("got %v, want an error of the listener", err)
	}
}

// pipes is a listener of connections in memory, whose deadlines work in a bubble.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestServeLimitsTheTimeOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		listener, ended, failed := make(pipes, 1), make(chan error, 1), make(chan time.Duration, 1)
		began := time.Now()
		go func() {
			ended <- Serve(ctx, listener, Options{
				Logger: slog.New(slog.DiscardHandler), Drain: time.Minute,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					for endless := make([]byte, 64<<10); ; {
						if _, err := w.Write(endless); err != nil {
							failed <- time.Since(began)
							return
						}
					}
				}),
			})
		}()
		client, server := net.Pipe()
		defer client.Close()
		listener <- server
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if took := <-failed; took != writeTimeout {
			t.Errorf("an answer that nobody reads took %s, want %s", took, writeTimeout)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
}
