// Package embedded runs a JetStream server within a process, for a single cluster that has no NATS of its own. It is a
// package apart so that only the program that embeds the server links it.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// syncEvery is how often the store is synced to disk. What a crash of the machine loses of it the watcher publishes again,
	// for it compares what is there with what the stream says.
	syncEvery = 10 * time.Second
	// readyWithin is how long the server may take to recover its store.
	readyWithin = time.Minute
	// readyStep is how long it is waited before its log is looked at again.
	readyStep = 100 * time.Millisecond
)

// Options say how a JetStream server is run within the process.
type Options struct {
	// Listen is the address for other programs, host:port. A port of -1 takes any that is free. Empty means that there is
	// none: only this process reaches the server.
	Listen string
	// StoreDir is where the streams are kept. Required.
	StoreDir string
	// ConfigFile is a file in nats-server's own format, for authorization, accounts, TLS and leaf nodes. Its listen address is
	// not read. Empty means none, and then Listen must be a loopback address.
	ConfigFile string
}

// Server is a JetStream server that runs within the process.
type Server struct{ server *server.Server }

// Start starts the server and returns when it takes connections. It refuses to listen off loopback without
// authentication: on an open bus, whoever reaches it could restart workloads. A nil logger means that nothing is logged.
func Start(opts Options, logger *slog.Logger) (*Server, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	options, err := opts.options()
	if err != nil {
		return nil, err
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
	return &Server{server: s}, nil
}

// ready waits until the server takes connections. It is false where the server gave up, which it says in its log alone, or
// took too long.
func ready(s *server.Server, log *serverLog) bool {
	for deadline := time.Now().Add(readyWithin); time.Now().Before(deadline) && log.fatal() == nil; {
		if s.ReadyForConnections(readyStep) {
			return s.JetStreamEnabled()
		}
	}
	return false
}

// ClientOption makes nats.Connect reach the server within the process. A server with authentication asks for credentials
// all the same.
func (s *Server) ClientOption() nats.Option { return nats.InProcessServer(s.server) }

// ClientURL is where other programs reach the server. It is empty where it does not listen.
func (s *Server) ClientURL() string {
	if s.server.Addr() == nil {
		return ""
	}
	return s.server.ClientURL()
}

// Shutdown stops the server and returns when its store is closed.
func (s *Server) Shutdown() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

func (o Options) options() (*server.Options, error) {
	if o.StoreDir == "" {
		return nil, errors.New("embedded nats: no store directory")
	}
	options := &server.Options{}
	if o.ConfigFile != "" {
		var err error
		if options, err = server.ProcessConfigFile(o.ConfigFile); err != nil {
			return nil, fmt.Errorf("embedded nats: reading %s: %w", o.ConfigFile, err)
		}
	}
	if options.Cluster.Port != 0 || options.Gateway.Name != "" {
		return nil, fmt.Errorf("embedded nats: %s: an embedded server is one replica; run a NATS of its own for a cluster or a gateway", o.ConfigFile)
	}
	options.JetStream = true
	options.StoreDir = o.StoreDir
	options.NoSigs = true
	options.NoLog = true
	if options.SyncInterval == 0 {
		options.SyncInterval = syncEvery
	}
	if o.Listen == "" {
		options.DontListen = true
		return options, nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded nats: listen %q: want host:port", o.Listen)
	}
	if options.Port, err = strconv.Atoi(port); err != nil || options.Port < -1 || options.Port > 65535 || options.Port == 0 {
		return nil, fmt.Errorf("embedded nats: listen %q: want host:port with a port from 1 to 65535", o.Listen)
	}
	options.Host = host
	if !isLoopback(host) && !authenticates(options) {
		return nil, fmt.Errorf("embedded nats: listen %q is not a loopback address: give a config file with an authorization or accounts block and without no_auth_user, or listen on 127.0.0.1", o.Listen)
	}
	return options, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// authenticates tells whether nobody can connect without proving who he is.
func authenticates(o *server.Options) bool {
	if o.NoAuthUser != "" || o.Websocket.NoAuthUser != "" || o.MQTT.NoAuthUser != "" {
		return false
	}
	return o.Username != "" || o.Authorization != "" || len(o.Users) > 0 || len(o.Nkeys) > 0 ||
		len(o.TrustedKeys) > 0 || len(o.TrustedOperators) > 0 || o.TLSVerify
}

// serverLog gives what the server logs to slog, and remembers what it gave up over.
type serverLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   error
}

var _ server.Logger = (*serverLog)(nil)

func (l *serverLog) log(level slog.Level, format string, v []any) {
	if ctx := context.Background(); l.logger.Enabled(ctx, level) {
		l.logger.Log(ctx, level, "nats-server", "text", fmt.Sprintf(format, v...))
	}
}

// Noticef implements server.Logger.
func (l *serverLog) Noticef(format string, v ...any) { l.log(slog.LevelInfo, format, v) }

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) { l.log(slog.LevelWarn, format, v) }

// Errorf implements server.Logger.
func (l *serverLog) Errorf(format string, v ...any) { l.log(slog.LevelError, format, v) }

// Debugf implements server.Logger.
func (l *serverLog) Debugf(format string, v ...any) { l.log(slog.LevelDebug, format, v) }

// Tracef implements server.Logger. Traces hold the payloads, so they are dropped.
func (l *serverLog) Tracef(string, ...any) {}

// Fatalf implements server.Logger. The server stops after it; the process does not.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.log(slog.LevelError, format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Errorf(format, v...)
}

// fatal is what the server gave up over, nil where it has not.
func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
