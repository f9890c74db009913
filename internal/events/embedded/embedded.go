// Package embedded runs a NATS JetStream server in the process, for a single cluster without an external NATS. It is a
// separate package so that only the program that embeds the server links it.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// readyTimeout bounds the recovery of the store.
	readyTimeout = time.Minute
	// readyPoll is how often the server's log is checked for a fatal error during the recovery.
	readyPoll = 100 * time.Millisecond
)

// Server is a JetStream server in the process.
type Server struct {
	server  *server.Server
	storage *storage
	// certificate and routes are those of the options.
	certificate, routes *certificate
	// leaf says that the server is configured as a leaf node of a hub.
	leaf bool
	// stop ends the goroutine that looks after the storage, and waits for it.
	stop func()
}

// Start starts a server and returns when it accepts connections. It returns an error for a listen address other than loopback
// without authentication, because anybody who can publish can restart workloads. A nil logger discards.
func Start(opts Options, logger *slog.Logger) (*Server, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if opts.free == nil {
		opts.free = freeBytes
	}
	opts.certificate, opts.routes = &certificate{logger: logger}, &certificate{logger: logger}
	options, ours, err := opts.limited()
	if err != nil {
		return nil, err
	}
	if opts.Replicas > 1 {
		removed, err := removeSingle(opts.StoreDir)
		if err != nil {
			return nil, fmt.Errorf("embedded nats: %w", err)
		}
		if removed {
			logger.WarnContext(context.Background(), "streams of a single nats server removed, a cluster begins with empty ones",
				"dir", opts.StoreDir)
		}
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("embedded nats: %w", err)
	}
	log := &serverLog{logger: logger.With("component", "nats-server")}
	s.SetLoggerV2(log, logger.Enabled(context.Background(), slog.LevelDebug), false, false)
	s.Start()
	if !ready(s, log) {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("embedded nats: it did not start: %w", cmp.Or(log.fatal(), errors.New("see its log")))
	}
	store := &storage{server: s, options: opts, ours: ours, logger: logger}
	if _, err := store.look(); err != nil {
		logger.WarnContext(context.Background(), "nats storage cannot be measured", "err", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var tending sync.WaitGroup
	tending.Go(func() { store.run(ctx) })
	return &Server{
		server: s, storage: store, certificate: opts.certificate, routes: opts.routes, leaf: len(options.LeafNode.Remotes) > 0,
		stop: func() { cancel(); tending.Wait() },
	}, nil
}

// ready waits for the server and reports whether it accepts connections. The server reports a fatal error in its log only.
func ready(s *server.Server, log *serverLog) bool {
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline) && log.fatal() == nil; {
		if s.ReadyForConnections(readyPoll) {
			return s.JetStreamEnabled()
		}
	}
	return false
}

// ClientOption returns the option that makes nats.Connect connect within the process. This needs no TLS, even if network clients do. It does not
// replace credentials.
func (s *Server) ClientOption() nats.Option { return nats.InProcessServer(s.server) }

// ClientURL returns the URL for other programs, or "" if the server does not listen.
func (s *Server) ClientURL() string {
	if s.server.Addr() == nil {
		return ""
	}
	return s.server.ClientURL()
}

// Ready is a readiness check. It returns an error while messages cannot be stored, because JetStream has stopped after an I/O error or
// the store has reached its limit. It also returns an error while the server is behind the others of its cluster: until it has caught up,
// the loss of another server may cost the majority.
func (s *Server) Ready() error { return s.storage.ready() }

// Alone returns an error if the server has had no contact with most servers of its cluster for some seconds. Clients of this server can
// then neither read nor publish, while clients of other servers may.
func (s *Server) Alone() error { return s.storage.alone() }

// Shutdown stops the server. It returns when the store is closed.
func (s *Server) Shutdown() {
	s.stop()
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
