package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/events/embedded"
	"github.com/keyturn/keyturn/internal/identity"
)

// logBuffer is what a program has logged so far.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// lines returns the lines with a message.
func (l *logBuffer) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for line := range bytes.Lines(l.buf.Bytes()) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if fields["msg"] == message {
			found = append(found, fields)
		}
	}
	return found
}

// addr returns the address that a server of the program listens on.
func (l *logBuffer) addr(t *testing.T, server string) string {
	t.Helper()
	for _, line := range l.lines(t, "listening") {
		if line["component"] == server {
			return line["addr"].(string)
		}
	}
	t.Fatalf("the %s server does not listen", server)
	return ""
}

// get asks a server of the test.
func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
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

// program returns one that listens on free ports and embeds its NATS. It runs work, in a cluster of its own.
func program(t *testing.T, log io.Writer, work func(ctx context.Context, bus *events.Bus) error) Program {
	t.Helper()
	options := DefaultOptions("actuator", "1.2.3")
	options.Cluster, options.MetricsAddr, options.HealthAddr = "west", "127.0.0.1:0", "127.0.0.1:0"
	store := t.TempDir()
	return Program{
		Name: "actuator", Version: "1.2.3", Options: options, Log: log,
		Prepare: func(r *Runtime) (Work, error) {
			r.Health.AddReadiness("workloads", func() error { return nil })
			r.Progress("deciding").Busy()
			system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "uid-west"}}
			return Work{Client: fake.NewClientset(system), Run: work}, nil
		},
		Connect: func(ctx context.Context, r *Runtime) (*nats.Conn, error) {
			server, err := embedded.Start(embedded.Options{StoreDir: store}, r.Logger)
			if err != nil {
				return nil, err
			}
			r.OnStop("embedded nats", func(context.Context) error {
				server.Shutdown()
				return nil
			})
			connection, err := r.Connect(ctx, server.ClientOption())
			if err != nil {
				return nil, err
			}
			js, err := jetstream.New(connection)
			if err != nil {
				return nil, err
			}
			return connection, events.Declare(ctx, js, 1)
		},
		Identify: identity.Claim,
	}
}

func TestRunRunsAProgramUntilTheContextEnds(t *testing.T) {
	log := &logBuffer{}
	began := make(chan *events.Bus, 1)
	p := program(t, log, func(ctx context.Context, bus *events.Bus) error {
		began <- bus
		<-ctx.Done()
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, p) }()
	var bus *events.Bus
	select {
	case bus = <-began:
	case err := <-ended:
		t.Fatalf("it ended before the work began: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the work did not begin")
	}

	if err := bus.CheckClaim(t.Context(), "uid-west", ""); err != nil {
		t.Errorf("the name of the cluster: got %v, want it claimed for uid-west", err)
	}
	for _, tt := range []struct {
		server, path string
		code         int
		body         string
	}{
		{"metrics", "/metrics", http.StatusOK, "go_goroutines"},
		{"metrics", "/metrics", http.StatusOK, `k8s_cluster_name="west"`},
		{"metrics", "/debug/pprof/", http.StatusNotFound, ""},
		{"metrics", "/livez", http.StatusNotFound, ""},
		{"health", "/livez", http.StatusOK, "[+]deciding ok\n"},
		{"health", "/readyz", http.StatusOK, "[+]workloads ok\n[+]nats ok\n"},
		{"health", "/metrics", http.StatusNotFound, ""},
	} {
		code, body := get(t, "http://"+log.addr(t, tt.server)+tt.path)
		if code != tt.code || !strings.Contains(body, tt.body) {
			t.Errorf("%s of %s is %d %q, want %d with %q", tt.path, tt.server, code, body, tt.code, tt.body)
		}
	}

	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the work", err)
	}
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", log.addr(t, "health")); err == nil {
		conn.Close()
		t.Error("health is still served after the end")
	}
}

func TestRunListensBeforeNATSIsReached(t *testing.T) {
	log := &logBuffer{}
	p := program(t, log, nil)
	p.Connect = func(ctx context.Context, _ *Runtime) (*nats.Conn, error) {
		if code, body := get(t, "http://"+log.addr(t, "health")+"/livez"); code != http.StatusOK {
			t.Errorf("livez is %d %q, want 200", code, body)
		}
		want := "[+]workloads ok\n[-]nats: "
		if code, body := get(t, "http://"+log.addr(t, "health")+"/readyz"); code != http.StatusServiceUnavailable || !strings.HasPrefix(body, want) {
			t.Errorf("readyz is %d %q, want 503 with %q", code, body, want)
		}
		return nil, errors.New("no nats")
	}
	if err := Run(t.Context(), p); err == nil || err.Error() != "no nats" {
		t.Errorf("got %v, want the error of Connect", err)
	}
}

func TestRunConnectsToTheServerOfTheFlags(t *testing.T) {
	p := program(t, io.Discard, nil)
	p.Connect, p.Options.NATS.URL = nil, "nats://127.0.0.1:1"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := Run(ctx, p)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "nats://127.0.0.1:1") {
		t.Errorf("got %v, want an error about the server that cannot be reached", err)
	}
}

func TestRunUndoesWhatItSetUpWhenAStepFails(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name   string
		damage func(p *Program)
		want   string
	}{
		{"an environment that telemetry does not understand", func(*Program) { t.Setenv("OTEL_TRACES_EXPORTER", "pigeon") }, "setting up traces: "},
		{"work that cannot be prepared", func(p *Program) {
			p.Prepare = func(*Runtime) (Work, error) { return Work{}, broken }
		}, "broken"},
		{"an address that cannot be listened on", func(p *Program) { p.Options.HealthAddr = "192.0.2.1:1" }, "serving health: listening: listen tcp 192.0.2.1:1"},
		{"streams that are not declared for this cluster", func(p *Program) { p.Options.Cluster = "a.b" }, `cluster "a.b"`},
		{"a cluster whose name is another's", func(p *Program) {
			p.Identify = func(context.Context, identity.Options, *events.Bus) error { return events.ErrClaimed }
		}, events.ErrClaimed.Error()},
		{"work that fails", func(*Program) {}, "broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_EXPORTER", "")
			stopped := false
			p := program(t, io.Discard, func(context.Context, *events.Bus) error { return broken })
			tt.damage(&p)
			prepare := p.Prepare
			p.Prepare = func(r *Runtime) (Work, error) {
				r.OnStop("work", func(context.Context) error {
					stopped = true
					return nil
				})
				return prepare(r)
			}
			err := Run(t.Context(), p)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if prepared := !strings.HasPrefix(tt.want, "setting up"); stopped != prepared {
				t.Errorf("stopped is %t, want %t", stopped, prepared)
			}
		})
	}
}

func TestProgramsRunSideBySide(t *testing.T) {
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if err := Run(t.Context(), program(t, io.Discard, func(context.Context, *events.Bus) error { return nil })); err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
	running.Wait()
}

func TestAProgramThatHasItsProcessKeepsItSmall(t *testing.T) {
	t.Setenv("GOGC", "100") // the percentage of the other tests is theirs
	p := program(t, io.Discard, func(context.Context, *events.Bus) error { return nil })
	p.SmallHeap = 1 << 20
	if err := Run(t.Context(), p); err != nil {
		t.Errorf("got %v", err)
	}
}
