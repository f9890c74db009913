package telemetry

import (
	"net/http"
	"strings"
	"sync"
)

// Health answers the probes of a kubelet from named checks. Its methods are safe for concurrent use.
//
// Liveness says whether a restart would help: it must not depend on another system. Readiness says whether the program
// does its work now. Checks run on every probe: they read state and do not wait. Without checks a probe passes.
type Health struct {
	mu        sync.Mutex
	liveness  []check
	readiness []check
}

// check is one named check.
type check struct {
	name string
	run  func() error
}

// AddLiveness adds a check to /livez. It fails where check returns an error, whose text is shown to whoever asks.
func (h *Health) AddLiveness(name string, run func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.liveness = append(h.liveness, check{name, run})
}

// AddReadiness adds a check to /readyz. It fails where check returns an error, whose text is shown to whoever asks.
func (h *Health) AddReadiness(name string, run func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readiness = append(h.readiness, check{name, run})
}

// Handler serves /livez, /readyz and /healthz, which is another name of /livez: 200 where every check passes, else 503,
// with one line for each check in the order they were added.
func (h *Health) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", h.probe(&h.liveness))
	mux.HandleFunc("GET /healthz", h.probe(&h.liveness))
	mux.HandleFunc("GET /readyz", h.probe(&h.readiness))
	return mux
}

// probe returns the handler of one list of checks.
func (h *Health) probe(list *[]check) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		// Lists only grow, so what was read under the lock stays as it is and checks run without it.
		h.mu.Lock()
		checks := *list
		h.mu.Unlock()

		status := http.StatusOK
		var lines strings.Builder
		for _, check := range checks {
			if err := check.run(); err != nil {
				status = http.StatusServiceUnavailable
				lines.WriteString("[-]" + check.name + ": " + strings.ReplaceAll(err.Error(), "\n", "; ") + "\n")
				continue
			}
			lines.WriteString("[+]" + check.name + " ok\n")
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		// An error here means that the prober has gone; there is nobody to tell.
		_, _ = w.Write([]byte(lines.String()))
	}
}
