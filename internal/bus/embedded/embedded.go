// Package embedded runs a NATS JetStream server in the process, for a single cluster without an external NATS, and creates the keys of an
// installation. It is a separate package so that programs that only read streams do not depend on the server.
//
// # Three servers
//
// A volume that the storage replicates fails over in minutes, and its driver may need the very credential that was rotated. A mirror lags, and
// somebody would have to decide which copy is current. So the server replicates. Two servers have no majority without each other, and five cost two
// more volumes. The Lease elects the actuator that patches, and Raft the server that orders a stream: they may be in different pods.
//
// The routes lead to a Service that also includes pods that are not ready, because no server becomes ready alone. They have TLS on both ends, because
// a route carries every message without users. A server is ready once it has caught up: otherwise, a rolling update would stop the second server
// while the first is empty.
//
// # Keys
//
// MakeKeys creates the fingerprint key, the NATS users, the key of the storage and the certificate of the NATS server with its CA, and, for several
// actuators, the certificate of the routes between their NATS servers.
//
// Each key is one Secret, created in one request, so no key is ever incomplete. An existing Secret is never changed, whatever it contains, so
// repeated and concurrent runs are harmless. It is not read, either: for these, permission to create Secrets in one namespace is enough.
//
// The exception is the certificate of the NATS server and its CA, which a later run renews when they are due. That needs permission to
// read and update these two Secrets. If a concurrent run has changed one of them, the run starts over. A certificate that the CA did not
// sign is not ours, and is never changed.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.opentelemetry.io/otel/metric"
)

const (
	readyTimeout = time.Minute            // bounds the recovery of the store
	readyPoll    = 100 * time.Millisecond // how often the server's log is checked for a fatal error during the recovery
)

// Server is a JetStream server in the process.
type Server struct {
	*storage
	isLeaf   bool               // the server is configured as a leaf node of a hub
	replicas int                // the number of servers that replicate the streams
	cancel   context.CancelFunc // ends the goroutine that looks after the storage, tending
	tending  sync.WaitGroup
	measured metric.Registration // the registration of the metrics, or nil
	own      nkeys.KeyPair       // the user of this process, or nil
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
	var own nkeys.KeyPair
	if opts.Reader != "" {
		var err error
		if own, err = ownUser(opts.StoreDir); err == nil {
			opts.own, err = own.PublicKey()
		}
		if err != nil {
			return nil, fmt.Errorf("embedded nats: making the user of this process: %w", err)
		}
	}
	key := opts.StorageKey
	opts.StorageKey = "" // unknown until the store was checked
	options, ours, err := opts.limited()
	if err != nil {
		return nil, err
	}
	if replicasOf(options) > 1 {
		removed, err := removeSingle(opts.StoreDir)
		if err != nil {
			return nil, fmt.Errorf("embedded nats: removing the streams of a single server: %w", err)
		}
		if removed {
			logger.WarnContext(context.Background(), "streams of a single nats server removed; a cluster begins with empty ones",
				"dir", opts.StoreDir)
		}
	}
	if options.JetStreamKey == "" { // that of a configuration file is its author's
		if opts.StorageKey, err = usableKey(opts.StoreDir, key, logger); err != nil {
			return nil, fmt.Errorf("embedded nats: %w", err)
		}
		opts.encrypt(options)
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
	running := &Server{
		storage: store, isLeaf: len(options.LeafNode.Remotes) > 0, replicas: replicasOf(options), cancel: cancel, own: own,
	}
	running.tending.Go(func() { store.run(ctx) })
	return running, nil
}

// ready waits for the server and reports whether it accepts connections. The server reports fatal errors only in its log.
func ready(s *server.Server, log *serverLog) bool {
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline) && log.fatal() == nil; {
		if s.ReadyForConnections(readyPoll) {
			return s.JetStreamEnabled()
		}
	}
	return false
}

// Replicas returns the number of servers that replicate the streams.
func (s *Server) Replicas() int { return s.replicas }

// ClientOption returns the option for connections within the process, without TLS. It replaces credentials only if there is a Reader, because the
// process then has its own user.
func (s *Server) ClientOption() nats.Option {
	return func(options *nats.Options) error {
		if s.own != nil {
			public, err := s.own.PublicKey()
			if err == nil {
				err = nats.Nkey(public, s.own.Sign)(options)
			}
			if err != nil {
				return fmt.Errorf("the user of this process: %w", err)
			}
		}
		return nats.InProcessServer(s.server)(options)
	}
}

// IsLeaf reports whether the server is a leaf node, so that clients of its hub can reach the streams, too.
func (s *Server) IsLeaf() bool { return s.isLeaf }

// ClientURL returns the URL for other programs, or "" if the server does not listen.
func (s *Server) ClientURL() string {
	if s.server.Addr() == nil {
		return ""
	}
	return s.server.ClientURL()
}

func (s *Server) stop() {
	s.cancel()
	s.tending.Wait()
}

// Shutdown stops the server. It returns when the store is closed.
func (s *Server) Shutdown() {
	if s.measured != nil {
		_ = s.measured.Unregister() // it never fails
	}
	s.stop()
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// serverLog forwards the server's log to slog, and keeps its last fatal error.
type serverLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   error
}

func (l *serverLog) log(level slog.Level, format string, v []any) {
	if ctx := context.Background(); l.logger.Enabled(ctx, level) {
		l.logger.Log(ctx, level, "nats-server", "text", fmt.Sprintf(format, v...))
	}
}

func (l *serverLog) Noticef(format string, v ...any) { l.log(slog.LevelInfo, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.log(slog.LevelWarn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.log(slog.LevelError, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.log(slog.LevelDebug, format, v) }

// Tracef drops traces, because they contain payloads.
func (l *serverLog) Tracef(string, ...any) {}

// Fatalf is called before the server stops. The process continues.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.log(slog.LevelError, format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Errorf(format, v...)
}

func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// removeSingle removes the streams of a single server from a store that a server of a cluster is going to use, and reports whether there were any. A
// server of a cluster neither adopts nor drops streams that the cluster does not know, and the cluster's own streams with these names would lack
// messages. The store of a cluster is recognized by the state of its meta group, in any account.
func removeSingle(storeDir string) (bool, error) {
	root := filepath.Join(storeDir, server.JetStreamStoreDir)
	if meta, err := filepath.Glob(filepath.Join(root, "*", "_js_", "_meta_")); err != nil || len(meta) > 0 {
		return false, err
	}
	streams, err := filepath.Glob(filepath.Join(root, "*", "streams", "*"))
	if err != nil || len(streams) == 0 {
		return false, err
	}
	return RemoveStreams(storeDir)
}
