package program

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// get sends a request to a server of the program, which must be listening.
func get(t *testing.T, log *testkit.Log, server, path string) (code int, body string) {
	t.Helper()
	code, body, err := testkit.Get(t.Context(), "http://"+log.Addr(t, server)+path)
	testkit.Must(t, err)
	return code, body
}

// testProgram returns a program that listens on free ports, connects to a NATS with streams of its own, and runs work in a cluster of its own.
func testProgram(t *testing.T, log io.Writer, work func(ctx context.Context, b *bus.Bus) error) program {
	t.Helper()
	options := defaultOptions("actuator", "1.2.3")
	options.Cluster, options.MetricsAddr, options.HealthAddr = "west", "127.0.0.1:0", "127.0.0.1:0"
	options.NATS.URL = natstest.Account(t)
	return program{
		Name: "actuator", Build: Build{Version: "1.2.3"}, Options: options, Log: log,
		Parts: []part{{
			Role: "actuator",
			Prepare: func(r *runtime) (prepared, error) {
				r.Health.AddReadiness("workloads", func() error { return nil })
				r.Progress("deciding").Busy()
				system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "uid-west"}}
				return prepared{Client: fake.NewClientset(system), Run: work}, nil
			},
			Connect: func(ctx context.Context, r *runtime) (*nats.Conn, error) {
				return r.Connect(ctx, nats.PingInterval(testkit.Patience)) // On a busy machine a ping may have no answer.
			},
			Identify: claimName,
		}},
	}
}

// embed makes a program embed its NATS.
func embed(t *testing.T, p *program) {
	t.Helper()
	store := testkit.StoreDir(t)
	p.Parts[0].Connect = func(ctx context.Context, r *runtime) (*nats.Conn, error) {
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
		js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience/2))
		if err != nil {
			return nil, err
		}
		return connection, bus.Declare(ctx, js, bus.Declared(1))
	}
}

func TestRunRunsAProgramUntilTheContextEnds(t *testing.T) {
	log := &testkit.Log{}
	began := make(chan *bus.Bus, 1)
	p := testProgram(t, log, func(ctx context.Context, b *bus.Bus) error {
		began <- b
		<-ctx.Done()
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, p)
		close(began)
	}()
	b := testkit.Receive(t, "the beginning of the work", began, log.String)
	if b == nil {
		t.Fatalf("it ended before the work began: %v", <-ended)
	}

	if err := b.CheckClaim(t.Context(), "uid-west", ""); err != nil {
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
		if code, body := get(t, log, tt.server, tt.path); code != tt.code || !strings.Contains(body, tt.body) {
			t.Errorf("%s of %s is %d %q, want %d with %q", tt.path, tt.server, code, body, tt.code, tt.body)
		}
	}

	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the work", err)
	}
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", log.Addr(t, "health")); err == nil {
		conn.Close()
		t.Error("health is still served after the end")
	}
}

func TestRunListensBeforeNATSIsReached(t *testing.T) {
	log := &testkit.Log{}
	p := testProgram(t, log, nil)
	p.Parts[0].Connect = func(ctx context.Context, _ *runtime) (*nats.Conn, error) {
		if code, body := get(t, log, "health", "/livez"); code != http.StatusOK {
			t.Errorf("livez is %d %q, want 200", code, body)
		}
		want := "[+]workloads ok\n[-]nats: "
		if code, body := get(t, log, "health", "/readyz"); code != http.StatusServiceUnavailable || !strings.HasPrefix(body, want) {
			t.Errorf("readyz is %d %q, want 503 with %q", code, body, want)
		}
		return nil, errors.New("no nats")
	}
	if err := run(t.Context(), p); err == nil || err.Error() != "no nats" {
		t.Errorf("got %v, want the error of Connect", err)
	}
}

func TestRunUndoesWhatItSetUpWhenAStepFails(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name   string
		damage func(p *program)
		want   string
	}{
		{"an environment that telemetry does not understand", func(*program) { t.Setenv("OTEL_TRACES_EXPORTER", "pigeon") }, "setting up traces: "},
		{"work that cannot be prepared", func(p *program) {
			p.Parts[0].Prepare = func(*runtime) (prepared, error) { return prepared{}, broken }
		}, "broken"},
		{"an address that cannot be listened on", func(p *program) { p.Options.HealthAddr = "192.0.2.1:1" }, "serving health: listening: listen tcp 192.0.2.1:1"},
		{"a cluster whose name is another's", func(p *program) {
			p.Parts[0].Identify = func(context.Context, identity, *bus.Bus) (keep, error) {
				return nil, bus.ErrClaimed
			}
		}, bus.ErrClaimed.Error()},
		{"work that fails", func(*program) {}, "broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_EXPORTER", "")
			stopped := false
			p := testProgram(t, io.Discard, func(context.Context, *bus.Bus) error { return broken })
			tt.damage(&p)
			prepare := p.Parts[0].Prepare
			p.Parts[0].Prepare = func(r *runtime) (prepared, error) {
				r.OnStop("work", func(context.Context) error {
					stopped = true
					return nil
				})
				return prepare(r)
			}
			err := run(t.Context(), p)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if prepared := !strings.HasPrefix(tt.want, "setting up"); stopped != prepared {
				t.Errorf("stopped is %t, want %t", stopped, prepared)
			}
		})
	}
}

func TestTheEndClosesNATSFirstAndTelemetryLast(t *testing.T) {
	t.Setenv("GOGC", "100") // so that it is not changed for the other tests
	var running *runtime
	var order []string
	p := testProgram(t, io.Discard, func(context.Context, *bus.Bus) error {
		for _, step := range slices.Backward(running.steps) {
			order = append(order, step.name)
		}
		return nil
	})
	embed(t, &p)
	p.SmallHeap = 1 << 20
	prepare := p.Parts[0].Prepare
	p.Parts[0].Prepare = func(r *runtime) (prepared, error) {
		running = r
		return prepare(r)
	}
	if err := run(t.Context(), p); err != nil {
		t.Errorf("got %v", err)
	}
	want := []string{"nats", "embedded nats", "health server", "metrics server", "memory", "telemetry"}
	testkit.WantEqual(t, "steps of the end", want, order)
}

func TestAPartThatEndsEndsTheOthers(t *testing.T) {
	type work = func(context.Context, *bus.Bus) error
	broken, late := errors.New("broken"), errors.New("not finished")
	fails := func(context.Context, *bus.Bus) error { return broken }
	until := func(err error) work {
		return func(ctx context.Context, _ *bus.Bus) error {
			<-ctx.Done()
			if err == nil {
				return ctx.Err()
			}
			return err
		}
	}
	for _, tt := range []struct {
		name   string
		works  []work
		cancel bool
		want   []error
		not    error
	}{
		{
			name: "an error is that of the program, and so is one on the way out", works: []work{until(nil), until(late), fails},
			want: []error{broken, late}, not: context.Canceled,
		},
		{name: "the end of the program is no error of its own", works: []work{until(nil), until(nil)}, cancel: true, want: []error{context.Canceled}},
		{name: "an error after the end is still one", works: []work{until(nil), until(late)}, cancel: true, want: []error{late}, not: context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var parts []*running
				for _, work := range tt.works {
					parts = append(parts, &running{work: prepared{Run: work}})
				}
				if tt.cancel {
					cancel()
				}
				err := runAll(ctx, parts)
				for _, want := range tt.want {
					if !errors.Is(err, want) {
						t.Errorf("got %v, want %v in it", err, want)
					}
				}
				if tt.not != nil && errors.Is(err, tt.not) {
					t.Errorf("got %v, which contains %v", err, tt.not)
				}
			})
		})
	}
}
