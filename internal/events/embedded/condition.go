package embedded

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// condition is what a server says about its JetStream.
type condition struct {
	// fault is why JetStream does not work, or nil. After an I/O error, such as a full volume, the server disables it, or stops writing a
	// stream, until it is restarted.
	fault error
	// behind says what the server lacks in comparison with its cluster, or is nil. The server catches up by itself. A restart would only delay that.
	behind error
}

// examine asks a server for its condition.
func examine(s *server.Server) condition {
	if !s.JetStreamEnabled() {
		return condition{fault: errors.New("jetstream is disabled after an i/o error")}
	}
	var now condition
	clustered := s.JetStreamIsClustered()
	for _, e := range s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		err := fmt.Errorf("jetstream: %s", e.Error)
		switch {
		// The server reports the write errors of streams nowhere else, and only in words.
		case strings.Contains(e.Error, "write error"), !clustered && e.Stream != "":
			now.fault = err
		case clustered:
			now.behind = err
		}
	}
	return now
}
