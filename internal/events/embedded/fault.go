package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/nats-io/nats-server/v2/server"
)

// fault returns why JetStream does not work, or nil. After an I/O error, such as a full volume, the server disables it, or stops
// writing a stream, until it is restarted.
func fault(s *server.Server) error {
	if !s.JetStreamEnabled() {
		return errors.New("jetstream is disabled after an i/o error")
	}
	// The server reports the write errors of streams nowhere else.
	answer := &recorder{header: http.Header{}}
	s.HandleHealthz(answer, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: server.HealthzPath, RawQuery: "details=true"}})
	var health struct {
		Errors []struct{ Stream, Error string }
	}
	if err := json.Unmarshal(answer.body.Bytes(), &health); err != nil {
		return fmt.Errorf("reading the health of jetstream: %w", err)
	}
	for _, e := range health.Errors {
		if e.Stream != "" {
			return fmt.Errorf("jetstream: %s", e.Error)
		}
	}
	return nil
}

// recorder is a response that is kept in memory.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

func (r *recorder) WriteHeader(int) {}
