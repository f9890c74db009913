package telemetry

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Probes serves the probes of a kubelet from named checks. Its methods are safe for concurrent use.
//
// Liveness fails if a restart would help, so its checks must not depend on another system. Readiness passes if the program currently does its work.
// Checks run on every probe, so they must only read state and not block. A probe without checks passes. The texts of errors must not contain secrets,
// because anyone who can reach the port can read them.
type Probes struct {
	mu        sync.Mutex
	liveness  []check
	readiness []check
}

type check struct {
	name string
	run  func() error
}

// AddLiveness adds a check to /livez, which fails if run returns an error, and serves its text.
func (h *Probes) AddLiveness(name string, run func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.liveness = append(h.liveness, check{name, run})
}

// AddReadiness adds a check to /readyz, which fails if run returns an error, and serves its text.
func (h *Probes) AddReadiness(name string, run func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readiness = append(h.readiness, check{name, run})
}

// Handler serves /livez and /readyz, with the aliases /healthz and alsoLive of /livez. The status is 200 if every check passes, and 503
// otherwise. The body has a line for each check, in the order in which they were added.
func (h *Probes) Handler(alsoLive ...string) http.Handler {
	mux := http.NewServeMux()
	for _, path := range append([]string{"/livez", "/healthz"}, alsoLive...) {
		mux.HandleFunc("GET "+path, h.probe(&h.liveness))
	}
	mux.HandleFunc("GET /readyz", h.probe(&h.readiness))
	return mux
}

// OnceReady returns a handler that responds like /readyz until every readiness check has passed once, and then calls the given handler.
func (h *Probes) OnceReady(handler http.Handler) http.Handler {
	var was atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !was.Load() {
			status, lines := h.run(&h.readiness)
			if status != http.StatusOK {
				answer(w, status, lines)
				return
			}
			was.Store(true)
		}
		handler.ServeHTTP(w, r)
	})
}

func (h *Probes) probe(list *[]check) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status, lines := h.run(list)
		answer(w, status, lines)
	}
}

// run runs one list of checks, and returns the status and the lines of the response.
func (h *Probes) run(list *[]check) (status int, lines string) {
	// The lists only grow, so the slice that is read under the lock stays valid, and the checks can run without the lock.
	h.mu.Lock()
	checks := *list
	h.mu.Unlock()

	status = http.StatusOK
	var text strings.Builder
	for _, check := range checks {
		if err := check.run(); err != nil {
			status = http.StatusServiceUnavailable
			text.WriteString("[-]" + check.name + ": " + strings.ReplaceAll(err.Error(), "\n", "; ") + "\n")
			continue
		}
		text.WriteString("[+]" + check.name + " ok\n")
	}
	return status, text.String()
}

func answer(w http.ResponseWriter, status int, lines string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// An error means that the client is gone.
	_, _ = w.Write([]byte(lines))
}

// Progress is a liveness check of a loop that waits for work and does it in steps. A loop that waits is alive, however long it waits; a loop whose
// current step has taken longer than the limit is stuck. Its methods are safe for concurrent use. The methods of a nil Progress do nothing, for loops
// that are not probed.
type Progress struct {
	now   func() time.Time
	limit time.Duration

	// since is the beginning of the current step, and nil while the loop waits.
	since atomic.Pointer[time.Time]
}

// NewProgress returns the progress of a loop that waits for work. A step may take at most limit.
func NewProgress(now func() time.Time, limit time.Duration) *Progress {
	return &Progress{now: now, limit: limit}
}

// Busy is called when the loop has taken work and begins a step.
func (p *Progress) Busy() {
	if p != nil {
		now := p.now()
		p.since.Store(&now)
	}
}

// Idle is called when the loop waits for work.
func (p *Progress) Idle() {
	if p != nil {
		p.since.Store(nil)
	}
}

// Check returns an error if the current step has taken longer than the limit. It is a check for Probes.
func (p *Progress) Check() error {
	if p == nil {
		return nil
	}
	since := p.since.Load()
	if since == nil {
		return nil
	}
	if took := p.now().Sub(*since); took > p.limit {
		return fmt.Errorf("in one step for %s, limit %s", took.Round(time.Second), p.limit)
	}
	return nil
}
