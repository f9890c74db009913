package events

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events/embedded"
	"github.com/keyturn/keyturn/tests/testkit"
)

// testServer is a NATS server with the streams declared.
type testServer struct {
	t   *testing.T
	dir string
	// config is the path of a configuration file. Empty means none.
	config string
	*embedded.Server
}

// startServer starts a server that listens on a free port of the loopback interface.
func startServer(t *testing.T) *testServer {
	t.Helper()
	s := &testServer{t: t, dir: testkit.StoreDir(t)}
	s.start(freeAddress(t)) // which stays free while the server is restarted
	t.Cleanup(func() { s.Shutdown() })
	if err := Declare(t.Context(), s.jetstream(), 1); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *testServer) start(listen string) {
	s.t.Helper()
	var err error
	if s.Server, err = embedded.Start(embedded.Options{Listen: listen, StoreDir: s.dir, ConfigFile: s.config}, nil); err != nil {
		s.t.Fatal(err)
	}
}

// restart stops the server and starts it again on the same port and store. Between runs while it is away.
func (s *testServer) restart(between func()) {
	s.t.Helper()
	u, err := url.Parse(s.ClientURL())
	if err != nil {
		s.t.Fatal(err)
	}
	s.Shutdown()
	between()
	s.start(u.Host)
}

// connect connects as a program does, but reconnects faster.
func (s *testServer) connect() *nats.Conn {
	s.t.Helper()
	nc, err := Connect(s.t.Context(), ConnectOptions{URL: s.ClientURL(), Cluster: testCluster, Name: s.t.Name()},
		nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// jetstream waits half the patience of a test for an answer, so that a poll repeats a request that is lost in a restart.
func (s *testServer) jetstream() jetstream.JetStream {
	s.t.Helper()
	js, err := jetstream.New(s.connect(), jetstream.WithDefaultTimeout(testkit.Patience/2))
	if err != nil {
		s.t.Fatal(err)
	}
	return js
}

func (s *testServer) bus() *Bus {
	s.t.Helper()
	b, err := Open(s.t.Context(), s.connect(), testCluster, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	b.stall = 50 * time.Millisecond
	return b
}

// version returns a change of the named Secret at a resourceVersion, with a content of its own.
func version(name, resourceVersion string) Change {
	c := change()
	c.Source.Name, c.UID = name, "uid-"+name
	c.ResourceVersion, c.ChangedAt = resourceVersion, resourceVersion
	c.Keys = map[string]Key{"password": {Fingerprint: sum("5"), ChangedAt: resourceVersion}}
	digits := strings.Repeat("0", 32) + resourceVersion
	c.Fingerprint = "k0a1b2c3d:" + digits[len(digits)-32:]
	return c
}

// mustPublish publishes a change and returns its sequence.
func mustPublish(t *testing.T, b *Bus, c Change, expected uint64) (seq uint64) {
	t.Helper()
	published(t, func() (err error) {
		seq, err = b.PublishChange(t.Context(), c, expected)
		return err
	})
	return seq
}

// published publishes an event. As the programs do, it repeats what has no answer: while the disk is busy, the server can take longer than a
// request waits.
func published(t *testing.T, publish func() error) {
	t.Helper()
	testkit.Eventually(t, "it is published", func() bool {
		err := publish()
		if err != nil && !IsSilence(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// messages returns the messages of a stream, in order.
func messages(t *testing.T, js jetstream.JetStream, stream string) []*jetstream.RawStreamMsg {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []*jetstream.RawStreamMsg
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
		raw, err := s.GetMsg(t.Context(), seq)
		switch {
		case err == nil:
			list = append(list, raw)
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			t.Fatal(err)
		}
	}
	return list
}
