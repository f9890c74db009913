package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/events/embedded"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// purge drops every event on StreamChanges, as an operator may do.
func (b *bench) purge() {
	b.Helper()
	stream, err := b.js.Stream(b.Context(), events.StreamChanges)
	if err != nil {
		b.Fatal(err)
	}
	if err := stream.Purge(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// redeclare deletes StreamChanges and declares it again.
func (b *bench) redeclare() {
	b.Helper()
	if err := b.js.DeleteStream(b.Context(), events.StreamChanges); err != nil {
		b.Fatal(err)
	}
	if err := events.Declare(b.Context(), b.js, 1); err != nil {
		b.Fatal(err)
	}
}

// state returns the last event of each source on the stream.
func (b *bench) state() map[string]string {
	state := make(map[string]string)
	filters := []string{events.KindFilter(testCluster, events.KindSecret), events.KindFilter(testCluster, events.KindExternalSecret)}
	err := b.bus.State(b.Context(), filters, func(stored events.Stored) error {
		change, err := stored.Change()
		if err != nil {
			return err
		}
		state[change.Source.String()] = told(change)
		return nil
	})
	if err != nil {
		b.Log(err)
	}
	return state
}

// watchful returns the options of a watcher that checks the stream often.
func (b *bench) watchful() Options {
	options := b.options()
	options.CheckStream = 20 * time.Millisecond
	return options
}

func TestAChangeAfterTheStreamWasPurgedIsAChange(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	defer b.ready(b.options())()
	b.want("secret/db observed u1/1 {a b} []")
	b.purge()
	b.update(secretOf("shop", "db", "u1", "2", "two"))
	b.want("secret/db observed u1/1 {a b} []", "secret/db changed u1/2@2 {a@2 b} [a] previous")
	b.eventually("it is on the stream", func() bool { return b.lastEvent() == "changed u1/2@2 {a@2 b} [a] previous" })
}

func TestWatcherPublishesAgainWhatTheStreamHasLost(t *testing.T) {
	for name, lose := range map[string]func(*bench){"purged": (*bench).purge, "deleted and declared again": (*bench).redeclare} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), secretOf("shop", "other", "u2", "1", "one"))
			defer b.ready(b.watchful())()
			b.update(secretOf("shop", "db", "u1", "2", "two"))
			b.create(secretOf("shop", "goes", "u3", "3", "one"))
			b.eventually("both are published", func() bool {
				state := b.state()
				return len(state) == 3 && strings.HasPrefix(state["secret/db"], "changed")
			})
			b.delete("shop", "goes")
			want := map[string]string{
				"secret/db":    "changed u1/2@2 {a@2 b} [a]",
				"secret/other": "observed u2/1 {a b} []",
				"secret/goes":  "deleted u3/3@3 {a b} []",
			}
			b.eventually("the deletion is published", func() bool { return b.state()["secret/goes"] == want["secret/goes"] })
			for range 2 {
				lose(b)
				b.eventually("they are on the stream again", func() bool { return cmp.Equal(want, b.state()) })
			}
			b.eventually("that is logged", func() bool {
				return strings.Contains(b.log.String(), `"level":"WARN","msg":"stream CHANGES has lost events; publishing them again"`)
			})
		})
	}
}

func TestWatchersPublishALostEventOnce(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	one, stopOne := b.startReady(b.watchful())
	defer stopOne()
	other, stopOther := b.startReady(b.watchful())
	defer stopOther()
	b.update(secretOf("shop", "db", "u1", "2", "two"))
	want := []string{"secret/db observed u1/1 {a b} []", "secret/db changed u1/2@2 {a@2 b} [a] previous"}
	b.want(want...)
	for _, w := range []*Watcher{one, other} {
		b.eventually("the watcher knows the change", func() bool { return w.ledger.get(testSource).version == "2" })
	}
	for range 3 {
		b.purge()
		b.eventually("it is published again", func() bool { return b.lastEvent() == "changed u1/2@2 {a@2 b} [a]" })
		stored, err := b.bus.Last(t.Context(), events.Subject(testCluster, testSource))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []*Watcher{one, other} {
			b.eventually("the watcher knows that it is on the stream", func() bool {
				entry := w.ledger.get(testSource)
				return entry.seq == stored.Seq && !entry.lost
			})
		}
		<-one.pending.quiet()
		<-other.pending.quiet()
		if again, err := b.bus.Last(t.Context(), events.Subject(testCluster, testSource)); err != nil || again.Seq != stored.Seq {
			t.Errorf("after sequence %d it has %d (%v)", stored.Seq, again.Seq, err)
		}
	}
}

func TestWatcherPublishesALostStatusAgain(t *testing.T) {
	b := newBench(t)
	b.put(externalSecretOf(t, "db", 1, "True", "1-a", nil))
	options := b.everyKind()
	options.CheckStream = 20 * time.Millisecond
	defer b.ready(options)()
	b.put(externalSecretOf(t, "db", 3, "True", "1-b", nil))
	b.want("externalsecret/db observed es/1 1-a of db: RTrue", "externalsecret/db synced es/3@3 1-b of db: RTrue previous")
	b.eventually("the sync is on the stream", func() bool { return len(b.state()) == 1 })
	b.purge()
	b.eventually("the last status is published again", func() bool {
		history := b.history()
		return len(b.state()) == 1 && history[len(history)-1] == "externalsecret/db synced es/3@3 1-b of db: RTrue"
	})
}

// storedBench is a bench whose server can be stopped and has a store that can be copied.
type storedBench struct {
	*bench
	dir    string
	server *embedded.Server
}

func newStoredBench(t *testing.T, objects ...runtime.Object) *storedBench {
	t.Helper()
	b := &storedBench{bench: newBench(t, objects...), dir: t.TempDir()}
	port, err := process.FreePort() // it stays free while the server is restarted
	if err != nil {
		t.Fatal(err)
	}
	b.start(process.Address(port))
	t.Cleanup(func() { b.server.Shutdown() })
	if b.nc, err = nats.Connect(b.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.nc.Close)
	if b.js, err = jetstream.New(b.nc); err != nil {
		t.Fatal(err)
	}
	if err := events.Declare(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	if b.bus, err = events.Open(t.Context(), b.nc, testCluster, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *storedBench) start(listen string) {
	b.Helper()
	var err error
	if b.server, err = embedded.Start(embedded.Options{Listen: listen, StoreDir: filepath.Join(b.dir, "store")}, nil); err != nil {
		b.Fatal(err)
	}
}

// restart stops the server and starts it again on the same port. between runs while the server is stopped.
func (b *storedBench) restart(between func() error) {
	b.Helper()
	listen := strings.TrimPrefix(b.server.ClientURL(), "nats://")
	b.server.Shutdown()
	if err := between(); err != nil {
		b.Fatal(err)
	}
	b.start(listen)
	b.eventually("the connection is up again", b.nc.IsConnected)
}

func TestWatcherPublishesAgainWhatARollbackOfTheStreamHasLost(t *testing.T) {
	b := newStoredBench(t, secretOf("shop", "db", "u1", "1", "one"))
	options := b.options()
	options.CheckStream = time.Hour // The reconnect triggers the check.
	defer b.ready(options)()
	b.eventually("the source is observed", func() bool { return b.lastEvent() == "observed u1/1 {a b} []" })
	store, older := filepath.Join(b.dir, "store"), filepath.Join(b.dir, "older")
	b.restart(func() error { return os.CopyFS(older, os.DirFS(store)) })
	b.update(secretOf("shop", "db", "u1", "2", "two"))
	b.eventually("the change is published", func() bool { return b.lastEvent() == "changed u1/2@2 {a@2 b} [a] previous" })
	b.create(secretOf("shop", "new", "u2", "3", "one"))
	b.eventually("the creation is published", func() bool { return len(b.state()) == 2 })
	b.restart(func() error {
		if err := os.RemoveAll(store); err != nil {
			return err
		}
		return os.Rename(older, store)
	})
	want := map[string]string{"secret/db": "changed u1/2@2 {a@2 b} [a]", "secret/new": "changed u2/3@3 {a b} [a b] created"}
	b.eventually("what was lost is on the stream again", func() bool { return cmp.Equal(want, b.state()) })
}
