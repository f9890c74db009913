package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// hubCluster is the cluster whose watcher watches a store for others.
const hubCluster = "hub"

// busOf returns the bus of a cluster.
func busOf(t *testing.T, cluster, url string) *Bus {
	t.Helper()
	nc, err := Connect(t.Context(), ConnectOptions{URL: url, Cluster: cluster}, impatient()...)
	testkit.Must(t, err)
	t.Cleanup(nc.Close)
	b, err := Open(t.Context(), nc, cluster, nil)
	testkit.Must(t, err)
	return b
}

// rotation returns a cluster's event about a version of a secret in a store.
func rotation(cluster, path string, number int64) events.Change {
	c := changeOf(events.KindOpenBao, events.VerbRotated)
	at := testTime.Add(time.Duration(number) * time.Second)
	c.Cluster, c.Source = cluster, events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: path}.Source()
	c.Store.Version, c.Store.Revision = number, strconv.FormatInt(number, 10)
	c.UID, c.ResourceVersion, c.WrittenAt = "bao", strconv.FormatInt(at.UnixNano(), 10), at
	c.ChangedAt = c.ResourceVersion
	return c
}

func TestAStreamThatGetsNoEventsOfTheStoresIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name    string
		config  jetstream.StreamConfig
		refused bool
	}{
		{"all clusters publish on it", jetstream.StreamConfig{Subjects: []string{"keyturn.v1.>"}}, false},
		{"it has a source", jetstream.StreamConfig{Subjects: []string{"keyturn.v1.prod-eu.>"}, Sources: StoreSources("hub", []string{hubCluster})}, false},
		{"it has a source of everything", jetstream.StreamConfig{Sources: []*jetstream.StreamSource{{Name: "CHANGES"}}}, false},
		{"it is of one cluster", jetstream.StreamConfig{Subjects: []string{"keyturn.v1.prod-eu.>"}}, true},
		{"it has a source of another cluster", jetstream.StreamConfig{Sources: StoreSources("hub", []string{"third"})}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Name = events.StreamChanges
			err := carries(tt.config, []string{hubCluster})
			if tt.refused != errors.Is(err, errStream) || tt.refused && !strings.Contains(err.Error(), "keyturn.v1.hub.openbao.>") {
				t.Errorf("got %v, want refused: %t", err, tt.refused)
			}
		})
	}
}

// domain is a server with a JetStream domain of its own.
type domain struct {
	*embedded.Server
	listen, dir, config string
}

func newDomain(t *testing.T, name, config string) *domain {
	t.Helper()
	d := &domain{listen: freeAddress(t), dir: testkit.StoreDir(t), config: filepath.Join(t.TempDir(), "nats.conf")}
	text := fmt.Sprintf("server_name: %s\njetstream: { domain: %s, store_dir: %q }\n%s\n", name, name, d.dir, config)
	testkit.Must(t, os.WriteFile(d.config, []byte(text), 0o600))
	d.start(t)
	t.Cleanup(func() { d.Shutdown() })
	return d
}

func (d *domain) start(t *testing.T) {
	t.Helper()
	var err error
	if d.Server, err = embedded.Start(embedded.Options{Listen: d.listen, StoreDir: d.dir, ConfigFile: d.config}, nil); err != nil {
		t.Fatal(err)
	}
}

// declare declares the streams as the embedding actuator does.
func (d *domain) declare(t *testing.T, sources ...*jetstream.StreamSource) {
	t.Helper()
	nc, err := nats.Connect(d.ClientURL(), nats.Timeout(testkit.Patience))
	testkit.Must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(testkit.Patience/2))
	testkit.Must(t, err)
	// Twice, as after a restart.
	for range 2 {
		testkit.Must(t, Declare(t.Context(), js, Declared(1, sources...)))
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := process.FreePort()
	testkit.Must(t, err)
	return process.Address(port)
}

func TestASpokeGetsTheEventsOfTheStoresFromTheHub(t *testing.T) {
	leafs := freeAddress(t)
	// The link forwards no subscriptions: events stay where they are published, unless they are sourced.
	hub := newDomain(t, "hub", fmt.Sprintf("leafnodes { listen: %q }", leafs))
	local := `deny_imports: "keyturn.>", deny_exports: "keyturn.>"`
	spoke := newDomain(t, "spoke", fmt.Sprintf("leafnodes { remotes: [ { url: \"nats://%s\", %s } ] }", leafs, local))
	hub.declare(t)
	spoke.declare(t, StoreSources("hub", []string{hubCluster})...)

	teller := busOf(t, hubCluster, hub.ClientURL())
	seq := mustPublish(t, teller, rotation(hubCluster, "shop/db", 1), 0)
	secret := version("db", "1")
	secret.Cluster = hubCluster
	mustPublish(t, teller, secret, 0)

	// awaitState waits until the spoke has these changes, and nothing else of the hub.
	awaitState := func(want ...string) {
		t.Helper()
		own := busOf(t, testCluster, spoke.ClientURL())
		testkit.Await(t, fmt.Sprintf("the spoke has %q", want), func(ctx context.Context) bool {
			var got []string
			err := own.State(ctx, []string{">"}, func(s events.Stored) error {
				change, err := s.Change()
				got = append(got, change.Cluster+" "+change.ID())
				return err
			})
			slices.Sort(got)
			return err == nil && slices.Equal(got, want)
		})
	}
	awaitState("hub bao/root/secret/shop/db/1")

	// While the link is down, one path is written twice, and another one for the first time.
	spoke.Shutdown()
	for number := int64(2); number <= 3; number++ {
		seq = mustPublish(t, teller, rotation(hubCluster, "shop/db", number), seq)
	}
	mustPublish(t, teller, rotation(hubCluster, "shop/mail", 1), 0)
	spoke.start(t)
	awaitState("hub bao/root/secret/shop/db/3", "hub bao/root/secret/shop/mail/1")
}
