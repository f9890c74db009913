package events

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events/embedded"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestEmbeddedWithoutAListener(t *testing.T) {
	var log testkit.Log
	s, err := embedded.Start(embedded.Options{StoreDir: testkit.StoreDir(t)}, log.Logger())
	must(t, err)
	defer s.Shutdown()
	if url := s.ClientURL(); url != "" {
		t.Errorf("it listens on %s", url)
	}
	nc, err := Connect(t.Context(), ConnectOptions{Cluster: testCluster}, s.ClientOption())
	must(t, err)
	defer nc.Close()
	if err := openAtOnce(t, nc); !errors.Is(err, errStream) {
		t.Errorf("got %v, want errStream: JetStream is there and the streams are not", err)
	}
	if !strings.Contains(log.String(), "component=nats-server") {
		t.Error("the server does not log")
	}
}

// completed is a Taker that only knows whether everything was read.
type completed chan struct{}

func (completed) Put(Address, *LastChange) {}

func (c completed) Complete(uint64) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// TestRights grants the users of a cluster exactly the permissions that the package documentation lists, and does everything
// with them that the programs do. Any other subject is denied.
func TestRights(t *testing.T) {
	seeds, users := make(map[string]string), ""
	watcherRights := []string{
		"keyturn.v1.prod-eu.>", "keyturn.history.v1.prod-eu.>", "$JS.API.STREAM.INFO.*",
		"$JS.API.DIRECT.GET.CHANGES.keyturn.v1.prod-eu.>",
		"$JS.API.CONSUMER.CREATE.CHANGES.>", "$JS.API.CONSUMER.INFO.CHANGES.>", "$JS.API.CONSUMER.DELETE.CHANGES.>",
		"$JS.API.CONSUMER.MSG.NEXT.CHANGES.>",
	}
	actuatorRights := append([]string{
		"keyturn.deadletter.v1.prod-eu.>", "$JS.API.CONSUMER.CREATE.DEADLETTERS.>", "$JS.API.CONSUMER.INFO.DEADLETTERS.>",
		"$JS.API.CONSUMER.MSG.NEXT.DEADLETTERS.>", "$JS.API.CONSUMER.CREATE.HISTORY.>", "$JS.API.CONSUMER.INFO.HISTORY.>",
		"$JS.API.CONSUMER.MSG.NEXT.HISTORY.>", "$JS.ACK.CHANGES.>", "$JS.ACK.HISTORY.>",
	}, watcherRights...)
	for name, rights := range map[string][]string{"operator": {">"}, "watcher": watcherRights, "actuator": actuatorRights} {
		dir := t.TempDir()
		public := testkit.NewNATSUser(t, dir, name)
		seeds[name] = filepath.Join(dir, name+".nk")
		quoted := make([]string, len(rights))
		for i, right := range rights {
			quoted[i] = fmt.Sprintf("%q", right)
		}
		users += fmt.Sprintf("{ nkey: %s, permissions { publish: [%s], subscribe: [\"_INBOX_%s.prod-eu.>\"] } }\n", public, strings.Join(quoted, ", "), name)
	}
	config := filepath.Join(t.TempDir(), "nats.conf")
	must(t, os.WriteFile(config, []byte("accounts { K { jetstream: enabled, users: [\n"+users+"] } }\n"), 0o600))
	s, err := embedded.Start(embedded.Options{Listen: "127.0.0.1:-1", StoreDir: testkit.StoreDir(t), ConfigFile: config}, nil)
	must(t, err)
	defer s.Shutdown()
	connect := func(name string, further ...nats.Option) (*nats.Conn, *testkit.Log) {
		var log testkit.Log
		nc, err := Connect(t.Context(), ConnectOptions{URL: s.ClientURL(), Cluster: testCluster, Role: name, CredsFile: seeds[name], Logger: log.Logger()}, further...)
		must(t, err)
		t.Cleanup(nc.Close)
		return nc, &log
	}
	nc, _ := connect("operator", s.ClientOption())
	must(t, declareWith(t.Context(), nc))

	nc, watcherLog := connect("watcher")
	b, err := Open(t.Context(), nc, testCluster, nil)
	must(t, err)
	mustPublish(t, b, version("db", "1"), 0)
	if _, err := lastOn(t, b, "keyturn.v1.prod-eu.secret.shop.db"); err != nil {
		t.Error(err)
	}
	if state := readState(t, b, SourceFilters(testCluster)); len(state) != 1 {
		t.Errorf("the state is %v", state)
	}

	nc, actuatorLog := connect("actuator")
	if b, err = Open(t.Context(), nc, testCluster, nil); err != nil {
		t.Fatal(err)
	}
	outcomes := consumeOutcomes(t, b, ConsumeOptions{Durable: "notify"})
	mustTell(t, b, outcome())
	outcomes.next().Done(t.Context(), nil)
	outcomes.stop()
	complete, follower := make(completed, 1), make(chan struct{})
	following, stop := context.WithCancel(t.Context())
	go func() {
		defer close(follower)
		NewFollower(b, nil, complete).Run(following)
	}()
	testkit.Eventually(t, "the whole stream is read", func() bool { return len(complete) > 0 })
	stop()
	<-follower
	c := consume(t, b, ConsumeOptions{Durable: "actuator"})
	c.reject(c.next(), rejectf("not-wanted", "no"))
	testkit.Await(t, "the refused event is a dead letter", func(ctx context.Context) bool {
		letters, err := b.DeadLetters(ctx, 1)
		return err == nil && len(letters) == 1
	})
	c.stop()
	for name, log := range map[string]*testkit.Log{"watcher": watcherLog, "actuator": actuatorLog} {
		if strings.Contains(log.String(), "ermissions") {
			t.Errorf("the %s was refused something: %s", name, log)
		}
	}

	// A cluster publishes only under its own name.
	must(t, nc.Publish("keyturn.v1.prod-us.secret.shop.db", nil))
	testkit.Eventually(t, "another cluster's subject is refused", func() bool { return strings.Contains(actuatorLog.String(), "prod-us") })
}

func declareWith(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(testkit.Patience/2))
	if err != nil {
		return err
	}
	return Declare(ctx, js, 1)
}
