package sources

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
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
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// purge drops every event on StreamChanges, as an operator may do.
func (b *bench) purge() {
	b.Helper()
	natstest.Publish(b.T, func() error {
		stream, err := b.js.Stream(b.Context(), events.StreamChanges)
		if err != nil {
			return err
		}
		return stream.Purge(b.Context())
	})
}

// redeclare deletes StreamChanges and declares it again.
func (b *bench) redeclare() {
	b.Helper()
	b.deleteStream(events.StreamChanges)
	b.declare()
}

func (b *bench) deleteStream(name string) {
	b.Helper()
	natstest.Publish(b.T, func() error {
		err := b.js.DeleteStream(b.Context(), name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil // The answer to the first request was late.
		}
		return err
	})
}

func (b *bench) declare() {
	b.Helper()
	natstest.Publish(b.T, func() error { return events.Declare(b.Context(), b.js, 1) })
}

// await is like eventually, for what reads a whole stream.
func (b *bench) await(what string, holds func(context.Context) bool) {
	b.Helper()
	testkit.Await(b.T, what, holds, b.log.String)
}

// state returns the last event of each source on the stream, or less if the stream cannot be read.
func (b *bench) state(ctx context.Context) map[string]string {
	state := make(map[string]string)
	filters := []string{events.KindFilter(testCluster, events.KindSecret), events.KindFilter(testCluster, events.KindExternalSecret)}
	err := b.bus.State(ctx, filters, func(stored events.Stored) error {
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

// wantState waits until the last event of each source on the stream is the wanted one.
func (b *bench) wantState(want map[string]string) {
	b.Helper()
	var got map[string]string
	testkit.Await(b.T, "the stream has the wanted last events", func(ctx context.Context) bool {
		got = b.state(ctx)
		return cmp.Equal(want, got)
	}, b.log.String, func() string { return "last events (-want +got):\n" + cmp.Diff(want, got) })
}

// seqOf returns the sequence of the last event of a source on StreamChanges, which must have one.
func (b *bench) seqOf(source events.Source) uint64 {
	b.Helper()
	var last events.Stored
	b.eventually("the last event of "+source.String()+" can be read", func() (ok bool) {
		last, ok = b.lastOn(events.Subject(testCluster, source))
		return ok
	})
	return last.Seq
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
			b.await("both are published", func(ctx context.Context) bool {
				state := b.state(ctx)
				return len(state) == 3 && strings.HasPrefix(state["secret/db"], "changed")
			})
			b.delete("shop", "goes")
			want := map[string]string{
				"secret/db":    "changed u1/2@2 {a@2 b} [a]",
				"secret/other": "observed u2/1 {a b} []",
				"secret/goes":  "deleted u3/3@3 {a b} []",
			}
			b.await("the deletion is published", func(ctx context.Context) bool { return b.state(ctx)["secret/goes"] == want["secret/goes"] })
			for range 2 {
				lose(b)
				b.wantState(want)
			}
			b.eventually("that is logged", func() bool {
				return strings.Contains(b.log.String(), `"level":"WARN","msg":"stream CHANGES has lost events; publishing them again"`)
			})
		})
	}
}

func TestWatcherPublishesAgainWhatTheStreamHasLostInItsMiddle(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	defer b.ready(b.watchful())()
	b.hasWatched()
	for i, name := range []string{"mid", "last"} {
		version := strconv.Itoa(i + 2)
		b.create(secretOf("shop", name, "u"+version, version, "one"))
		b.eventually(name+" is published", func() bool { return len(b.history()) == i+2 })
	}
	natstest.Publish(b.T, func() error {
		stream, err := b.js.Stream(b.Context(), events.StreamChanges)
		if err != nil {
			return err
		}
		lost := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "mid"}
		return stream.Purge(b.Context(), jetstream.WithPurgeSubject(events.Subject(testCluster, lost)))
	})
	b.wantState(map[string]string{
		"secret/db": "observed u1/1 {a b} []", "secret/mid": "changed u2/2@2 {a b} [a b] created", "secret/last": "changed u3/3@3 {a b} [a b] created",
	})
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
		b.eventually("the watcher knows the change", func() bool { return w.ledger.get(testSource).ResourceVersion == "2" })
	}
	for range 3 {
		b.purge()
		b.eventually("it is published again", func() bool { return b.lastEvent() == "changed u1/2@2 {a@2 b} [a]" })
		seq := b.seqOf(testSource)
		for _, w := range []*Watcher{one, other} {
			b.eventually("the watcher knows that it is on the stream", func() bool {
				entry := w.ledger.get(testSource)
				return entry.Seq == seq && !entry.Lost
			})
		}
		<-one.pending.quiet()
		<-other.pending.quiet()
		if again := b.seqOf(testSource); again != seq {
			t.Errorf("after sequence %d it has %d", seq, again)
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
	b.await("the sync is on the stream", func(ctx context.Context) bool { return len(b.state(ctx)) == 1 })
	b.purge()
	b.await("the last status is published again", func(ctx context.Context) bool {
		history := b.history()
		return len(b.state(ctx)) == 1 && history[len(history)-1] == "externalsecret/db synced es/3@3 1-b of db: RTrue"
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
	b.nc, err = nats.Connect(b.server.ClientURL(), nats.Timeout(testkit.Patience), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.nc.Close)
	if b.js, err = jetstream.New(b.nc); err != nil {
		t.Fatal(err)
	}
	b.declare()
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
	b.await("the creation is published", func(ctx context.Context) bool { return len(b.state(ctx)) == 2 })
	b.restart(func() error {
		if err := os.RemoveAll(store); err != nil {
			return err
		}
		return os.Rename(older, store)
	})
	b.wantState(map[string]string{"secret/db": "changed u1/2@2 {a@2 b} [a]", "secret/new": "changed u2/3@3 {a b} [a b] created"})
}
