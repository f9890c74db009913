// Package natstest gives tests a NATS with JetStream in their process: an account of the server that the tests of a package share or, if the test is
// about the server, one of its own.
package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testkit"
)

// startTimeout is how long a server may take until it accepts connections, and until it has accepted one. Test machines are sometimes slow.
const startTimeout = time.Minute

// Options configure a server. The zero value listens on a free port and lets every client in.
type Options struct {
	// Host is the host that it listens on. Empty means 127.0.0.1.
	Host string
	// Port is the port it listens on. Zero means any free port, which may be another one after a restart.
	Port int
	// Users are the public keys of the only users that may connect. Empty means everyone.
	Users []string
}

// Server is a NATS server of one test, with its own store. It ends with the test.
type Server struct {
	t       testing.TB
	options server.Options
	server  *server.Server
}

// Start starts a server without streams.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	s := &Server{t: t, options: server.Options{
		Host: options.Host, Port: options.Port, JetStream: true, StoreDir: testkit.StoreDir(t), NoLog: true, NoSigs: true,
		AuthTimeout: startTimeout.Seconds(),
	}}
	if s.options.Host == "" {
		s.options.Host = "127.0.0.1"
	}
	if s.options.Port == 0 {
		s.options.Port = server.RANDOM_PORT
	}
	for _, user := range options.Users {
		s.options.Nkeys = append(s.options.Nkeys, &server.NkeyUser{Nkey: user})
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start starts the server again after [Server.Stop], on the same store and, if [Options] name one, the same port.
func (s *Server) Start() {
	s.t.Helper()
	options := s.options // the server changes its options
	var err error
	if s.server, err = server.NewServer(&options); err != nil {
		s.t.Fatal(err)
	}
	s.server.Start()
	if !s.server.ReadyForConnections(startTimeout) {
		s.t.Fatal("the NATS server is not ready")
	}
}

// Stop stops the server and waits for it. It may be called more than once.
func (s *Server) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// URL returns the address that clients connect to.
func (s *Server) URL() string { return s.server.ClientURL() }

// Declare declares the project's streams, without replicas.
func (s *Server) Declare(credentials ...nats.Option) {
	s.t.Helper()
	s.JetStream(func(js jetstream.JetStream) {
		testkit.Must(s.t, bus.Declare(s.t.Context(), js, bus.Declared(1)))
	}, credentials...)
}

// JetStream connects to the server, calls use, and closes the connection again.
func (s *Server) JetStream(use func(jetstream.JetStream), credentials ...nats.Option) {
	s.t.Helper()
	connection, js := connect(s.t, s.URL(), credentials...)
	defer connection.Close()
	use(js)
}
