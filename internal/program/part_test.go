package program

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/tests/testkit"
)

// beside adds a second part to a program that has one. It connects to the first part's server.
func beside(p *program, work func(ctx context.Context, bus *events.Bus) error) {
	var connection *nats.Conn
	first := p.Parts[0].Connect
	p.Parts[0].Connect = func(ctx context.Context, r *runtime) (*nats.Conn, error) {
		var err error
		connection, err = first(ctx, r)
		return connection, err
	}
	p.Parts = append(p.Parts, part{
		Role: "watcher",
		Prepare: func(r *runtime) (prepared, error) {
			r.Health.AddReadiness("sources", func() error { return nil })
			return prepared{Run: work}, nil
		},
		Connect: func(context.Context, *runtime) (*nats.Conn, error) { return connection, nil },
	})
}

func TestPartsShareOneServerAndRunUntilTheContextEnds(t *testing.T) {
	log := &testkit.Log{}
	began := make(chan bool, 2)
	work := func(ctx context.Context, _ *events.Bus) error {
		began <- true
		<-ctx.Done()
		return ctx.Err()
	}
	p := testProgram(t, log, work)
	beside(&p, work)
	p.Name, p.OneServer, p.Options.HealthAddr = "reloader", true, "192.0.2.1:1"
	p.Servers = []server{{Name: "pprof", Addr: "127.0.0.1:0", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	})}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, p)
		close(began)
	}()
	for range 2 {
		if !testkit.Receive(t, "the beginning of both parts", began, log.String) {
			t.Fatalf("it ended before both parts began: %v", <-ended)
		}
	}
	wantAnswers(t, log, []answer{
		{"metrics", "/metrics", http.StatusOK, `service_name="keyturn-reloader"`},
		{"metrics", "/live", http.StatusOK, "[+]deciding ok\n"},
		{"metrics", "/livez", http.StatusOK, "[+]deciding ok\n"},
		{"metrics", "/readyz", http.StatusOK, "[+]workloads ok\n[+]actuator nats ok\n[+]sources ok\n[+]watcher nats ok\n"},
		{"metrics", "/debug/pprof/", http.StatusNotFound, ""},
		{"pprof", "/", http.StatusTeapot, ""},
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that of the parts", err)
	}
}

func TestAPartThatEndsEndsTheOthers(t *testing.T) {
	broken, late := errors.New("broken"), errors.New("not finished")
	until := func(err error) func(context.Context, *events.Bus) error {
		return func(ctx context.Context, _ *events.Bus) error {
			<-ctx.Done()
			if err == nil {
				return ctx.Err()
			}
			return err
		}
	}
	for _, tt := range []struct {
		name   string
		works  []func(context.Context, *events.Bus) error
		cancel bool
		want   []error
		not    error
	}{
		{
			"the error of one is that of the program",
			[]func(context.Context, *events.Bus) error{until(nil), func(context.Context, *events.Bus) error { return broken }},
			false,
			[]error{broken},
			context.Canceled,
		},
		{
			"an error on the way out is reported too",
			[]func(context.Context, *events.Bus) error{until(late), func(context.Context, *events.Bus) error { return broken }},
			false,
			[]error{broken, late},
			context.Canceled,
		},
		{
			"the end of the program is no error of its own",
			[]func(context.Context, *events.Bus) error{until(nil), until(nil)},
			true,
			[]error{context.Canceled},
			nil,
		},
		{
			"an error after the end is still one",
			[]func(context.Context, *events.Bus) error{until(nil), until(late)},
			true,
			[]error{late},
			context.Canceled,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var parts []*running
				for _, work := range tt.works {
					keep := identity.Keep(func(context.Context) error { return nil })
					parts = append(parts, &running{work: prepared{Run: work}, keep: keep})
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
