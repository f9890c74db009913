package bus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest/shared"
)

// testServer is a NATS with the streams declared, which a test has for itself.
type testServer struct {
	t *testing.T
	// url returns the address that a test connects to.
	url func() string
}

// sharedServer returns an account of the server that all tests share. A test that restarts its server, fills it or gives it a configuration has an
// ownServer.
func sharedServer(t *testing.T) *testServer {
	t.Helper()
	address := shared.Account(t)
	s := &testServer{t: t, url: func() string { return address }}
	s.declare()
	return s
}

func (s *testServer) declare() {
	s.t.Helper()
	testkit.Must(s.t, Declare(s.t.Context(), s.jetstream(), Declared(1)))
}

// impatient are options of a connection that reconnects at once. It is patient with a server that answers no ping, as on a busy machine: those that
// stop are noticed nevertheless.
func impatient() []nats.Option {
	return []nats.Option{nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0), nats.PingInterval(testkit.Patience)}
}

// connect connects as a program does, but reconnects faster.
func (s *testServer) connect() *nats.Conn {
	s.t.Helper()
	nc, err := Connect(s.t.Context(), ConnectOptions{URL: s.url(), Cluster: testCluster, Name: s.t.Name()}, impatient()...)
	testkit.Must(s.t, err)
	s.t.Cleanup(nc.Close)
	return nc
}

// jetstream waits half the patience of a test for an answer, so that a poll repeats a request that is lost in a restart.
func (s *testServer) jetstream() jetstream.JetStream {
	s.t.Helper()
	js, err := jetstream.New(s.connect(), jetstream.WithDefaultTimeout(testkit.Patience/2))
	testkit.Must(s.t, err)
	return js
}

func (s *testServer) bus() *Bus {
	s.t.Helper()
	b, err := Open(s.t.Context(), s.connect(), testCluster, nil)
	testkit.Must(s.t, err)
	b.stall = 50 * time.Millisecond
	return b
}

// ownServer is a server of one test.
type ownServer struct {
	testServer
	dir string
	// config is the path of a configuration file. Empty means none.
	config string
	*embedded.Server
}

// newServer returns a server on a folder of [testkit.StoreDir]. It is not started, and has no streams.
func newServer(t *testing.T, dir string) *ownServer {
	t.Helper()
	s := &ownServer{dir: dir}
	s.testServer = testServer{t: t, url: func() string { return s.ClientURL() }}
	t.Cleanup(func() {
		if s.Server != nil {
			s.Shutdown()
		}
	})
	return s
}

func (s *ownServer) start(listen string) {
	s.t.Helper()
	var err error
	if s.Server, err = embedded.Start(embedded.Options{Listen: listen, StoreDir: s.dir, ConfigFile: s.config}, nil); err != nil {
		s.t.Fatal(err)
	}
}

// restart stops the server and starts it again on the same port and store. Between runs while it is away.
func (s *ownServer) restart(between func()) {
	s.t.Helper()
	u, err := url.Parse(s.ClientURL())
	testkit.Must(s.t, err)
	s.Shutdown()
	between()
	s.start(u.Host)
}

// answer repeats a request until it has an answer, as the programs do: while the machine or its disk is busy, the server can take longer than a
// request waits.
func answer[T any](t *testing.T, request func() (T, error)) (got T, err error) {
	t.Helper()
	testkit.Eventually(t, "the request is answered", func() bool {
		got, err = request()
		return !IsSilence(err)
	}, func() string { return fmt.Sprint(err) })
	return got, err
}

// errorOf repeats a request until it has an answer, and returns its error.
func errorOf(t *testing.T, request func() error) error {
	t.Helper()
	_, err := answer(t, func() (struct{}, error) { return struct{}{}, request() })
	return err
}

// anyReader is a Reader or a Bus.
type anyReader interface {
	Last(ctx context.Context, subject string) (events.Stored, error)
	State(ctx context.Context, filters []string, fn func(events.Stored) error) error
	History(ctx context.Context, query HistoryQuery, fn func(events.Stored) error) error
}

// lastOn returns the last event on a subject.
func lastOn(t *testing.T, from anyReader, subject string) (events.Stored, error) {
	t.Helper()
	return answer(t, func() (events.Stored, error) { return from.Last(t.Context(), subject) })
}

// published publishes an event.
func published(t *testing.T, publish func() error) {
	t.Helper()
	testkit.Must(t, errorOf(t, publish))
}

// mustPublish publishes a change and returns its sequence.
func mustPublish(t *testing.T, b *Bus, c events.Change, expected uint64) (seq uint64) {
	t.Helper()
	published(t, func() (err error) {
		seq, err = b.PublishChange(t.Context(), c, expected)
		return err
	})
	return seq
}

// fill stores a message, which is no event, for each of so many Secrets. That takes a moment where publishing as many changes takes seconds.
func fill(t *testing.T, js jetstream.JetStream, secrets int) {
	t.Helper()
	for i := range secrets {
		testkit.Must(t, errIn(js.PublishAsync(fmt.Sprintf("keyturn.v1.%s.secret.shop.s%d", testCluster, i), []byte("not an event"))))
	}
	testkit.Eventually(t, "the messages are stored", func() bool { return js.PublishAsyncPending() == 0 })
}

// messages returns the messages of a stream, in order.
func messages(t *testing.T, js jetstream.JetStream, stream string) []*jetstream.RawStreamMsg {
	t.Helper()
	s, err := answer(t, func() (jetstream.Stream, error) { return js.Stream(t.Context(), stream) })
	testkit.Must(t, err)
	state := s.CachedInfo().State
	var list []*jetstream.RawStreamMsg
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		raw, err := answer(t, func() (*jetstream.RawStreamMsg, error) { return s.GetMsg(t.Context(), seq) })
		switch {
		case err == nil:
			list = append(list, raw)
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			t.Fatal(err)
		}
	}
	return list
}

func declareWith(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(testkit.Patience/2))
	if err != nil {
		return err
	}
	return Declare(ctx, js, Declared(1))
}
