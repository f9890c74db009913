package telemetry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestProbes(t *testing.T) {
	ok := func() error { return nil }
	fails := func(text string) func() error { return func() error { return errors.New(text) } }
	for _, tt := range []struct {
		name string
		add  func(*Probes)
		path string
		code int
		body string
	}{
		{"without checks a program is ready", func(*Probes) {}, "/readyz", 200, ""},
		{
			"one failure fails the probe and every check has a line, in order",
			func(h *Probes) {
				h.AddReadiness("sync", ok)
				h.AddReadiness("nats", fails("not connected"))
				h.AddReadiness("api", ok)
			},
			"/readyz", 503, "[+]sync ok\n[-]nats: not connected\n[+]api ok\n",
		},
		{
			"an error of several lines stays one line",
			func(h *Probes) { h.AddLiveness("loops", fails("one\ntwo")) }, "/livez", 503, "[-]loops: one; two\n",
		},
		{
			"liveness is no matter of readiness", func(h *Probes) { h.AddReadiness("nats", ok); h.AddLiveness("loop", fails("stuck")) },
			"/readyz", 200, "[+]nats ok\n",
		},
		{"healthz is livez", func(h *Probes) { h.AddLiveness("loop", fails("stuck")) }, "/healthz", 503, "[-]loop: stuck\n"},
		{"nothing else is served", func(*Probes) {}, "/debug/pprof/", 404, "404 page not found\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var health Probes
			tt.add(&health)
			response := httptest.NewRecorder()
			health.Handler().ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tt.path, nil))
			if response.Code != tt.code {
				t.Errorf("code is %d, want %d", response.Code, tt.code)
			}
			testkit.WantEqual(t, "body", tt.body, response.Body.String())
		})
	}
}

func TestProbesTakeChecksWhileItAnswers(t *testing.T) {
	var health Probes
	handler := health.Handler()
	added := make(chan struct{})
	go func() {
		defer close(added)
		for range 100 {
			health.AddLiveness("late", func() error { return nil })
		}
	}()
	for range 100 {
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/livez", nil))
		if response.Code != http.StatusOK {
			t.Fatalf("code is %d, want 200", response.Code)
		}
	}
	<-added
}

func TestAHandlerAnswersFromTheTimeItIsReady(t *testing.T) {
	var health Probes
	ready := errors.New("syncing")
	health.AddReadiness("sources", func() error { return ready })
	health.AddLiveness("loop", func() error { return errors.New("stuck") })
	handler := health.OnceReady(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for _, step := range []struct {
		name string
		now  error
		code int
		body string
	}{
		{"before it is ready", errors.New("syncing"), http.StatusServiceUnavailable, "[-]sources: syncing\n"},
		{"when it is ready", nil, http.StatusTeapot, ""},
		{"when it is not ready any more", errors.New("not connected"), http.StatusTeapot, ""},
	} {
		ready = step.now
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		if response.Code != step.code || response.Body.String() != step.body {
			t.Errorf("%s: got %d %q, want %d %q", step.name, response.Code, response.Body, step.code, step.body)
		}
	}
}

func TestProgress(t *testing.T) {
	const limit = time.Minute
	busy, idle := (*Progress).Busy, (*Progress).Idle
	type event struct {
		after time.Duration // since the previous one
		do    func(*Progress)
	}
	for _, tt := range []struct {
		name   string
		events []event
		then   time.Duration
		want   string // empty if the loop is alive
	}{
		{"a loop that never had work is alive", nil, time.Hour, ""},
		{"a step longer than the limit is not", []event{{0, busy}}, limit + time.Second, "in one step for 1m1s, limit 1m0s"},
		{"a loop that finished its step waits as long as it likes", []event{{0, busy}, {30 * time.Second, idle}}, time.Hour, ""},
		{"a new step has the whole time again", []event{{0, busy}, {50 * time.Second, busy}}, 50 * time.Second, ""},
		{"a loop that is stuck and recovers is alive again", []event{{0, busy}, {time.Hour, idle}}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			progress := NewProgress(func() time.Time { return now }, limit)
			for _, event := range tt.events {
				now = now.Add(event.after)
				event.do(progress)
			}
			now = now.Add(tt.then)
			var got string
			if err := progress.Check(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("check says %q, want %q", got, tt.want)
			}
		})
	}
}

func TestProgressThatIsNilDoesNothing(t *testing.T) {
	var progress *Progress
	progress.Busy()
	progress.Idle()
	if err := progress.Check(); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}
