package natstest

import (
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testkit"
)

// InBubble runs a test in a bubble of testing/synctest, with a NATS server in it: hours of the server and of its clients pass in milliseconds. The
// project's streams are declared. The test must end what it has started, and not be parallel.
func InBubble(t *testing.T, test func(t *testing.T, s *BubbleServer)) {
	t.Helper()
	// The server's clock for what is used rarely is a goroutine of the process, which must belong to no bubble.
	ats.Register()
	defer ats.Unregister()
	emptyPools()
	defer emptyPools()
	synctest.Test(t, func(t *testing.T) {
		s := &BubbleServer{t: t, dir: testkit.StoreDir(t)}
		s.Start()
		defer s.Stop()
		nc := s.Connect()
		js, err := jetstream.New(nc)
		if err == nil {
			err = bus.Declare(t.Context(), js, bus.Declared(1))
		}
		nc.Close()
		testkit.Must(t, err)
		test(t, s)
	})
}

// emptyPools drops what is in each sync.Pool. The client library has its timers in one, and a timer of a bubble must not be used outside of it, nor
// one of outside in it. What the first collection leaves, the second drops.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}

// BubbleServer is a NATS server in a bubble. It listens nowhere: its clients are in the bubble, too.
type BubbleServer struct {
	t   *testing.T
	dir string
	// mu guards server, which Start replaces while clients connect again.
	mu     sync.Mutex
	server *server.Server
}

// Start starts the server, also after Stop, with what it has stored.
func (s *BubbleServer) Start() {
	s.t.Helper()
	// Nothing has to outlive a loss of power.
	started, err := server.NewServer(&server.Options{
		DontListen: true, JetStream: true, StoreDir: s.dir, NoLog: true, NoSigs: true, SyncInterval: 24 * time.Hour,
	})
	testkit.Must(s.t, err)
	started.Start()
	if !started.ReadyForConnections(time.Minute) {
		s.t.Fatal("the NATS server is not ready")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = started
}

// Stop stops the server. Clients that are not closed connect again once it is started.
func (s *BubbleServer) Stop() {
	running := s.running()
	running.Shutdown()
	running.WaitForShutdown()
}

func (s *BubbleServer) running() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// Dir is the folder with what the server has stored, which a test may replace while the server is stopped.
func (s *BubbleServer) Dir() string { return s.dir }

// InProcessConn returns a new connection to the server, as the client library wants it.
func (s *BubbleServer) InProcessConn() (net.Conn, error) { return s.running().InProcessConn() }

// Connect returns a client. The caller must close it.
func (s *BubbleServer) Connect() *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect("",
		nats.InProcessServer(s), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.PingInterval(time.Hour))
	testkit.Must(s.t, err)
	return nc
}
