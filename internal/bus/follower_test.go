package bus_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// followed is a stream in a bubble, and what a Follower has read of it.
type followed struct {
	*testing.T
	nats *natstest.BubbleServer
	nc   *nats.Conn
	js   jetstream.JetStream
	bus  *bus.Bus
	// state is what is known, and log is that of the Follower.
	state *events.LastChanges
	log   *testkit.Log

	mu sync.Mutex
	// news are the changes that were new, and epochs is the number of epochs that were complete, since the test last asked.
	news   []string
	epochs int
}

// following runs a test in a bubble, with a stream.
func following(t *testing.T, story func(f *followed)) {
	natstest.InBubble(t, func(t *testing.T, server *natstest.BubbleServer) {
		f := &followed{
			T: t, nats: server, nc: server.Connect(), log: &testkit.Log{},
			state: events.NewLastChanges(events.Origins{Cluster: "demo", StoresFrom: []string{"hub"}}),
		}
		defer f.nc.Close()
		f.bus = f.open("demo", f.nc)
		var err error
		if f.js, err = jetstream.New(f.nc); err != nil {
			t.Fatal(err)
		}
		story(f)
		if t.Failed() {
			t.Log(f.log)
		}
	})
}

func (f *followed) open(cluster string, nc *nats.Conn) *bus.Bus {
	f.Helper()
	b, err := bus.Open(f.Context(), nc, cluster, f.log.Logger())
	testkit.Must(f, err)
	return b
}

// start starts a Follower with a connection of its own, and returns the function that stops it.
func (f *followed) start() (stop func()) {
	f.Helper()
	nc := f.nats.Connect()
	follower := bus.NewFollower(f.open("demo", nc), []string{"hub"}, f)
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follower.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
		nc.Close()
	}
}

// Put implements Taker.
func (f *followed) Put(at events.Address, c *events.LastChange) {
	if _, isNew := f.state.Put(at, c); isNew {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.news = append(f.news, at.Name+"@"+c.ResourceVersion)
	}
}

// Complete implements Taker.
func (f *followed) Complete(uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epochs++
}

// pass lets time pass.
func (f *followed) pass(d time.Duration) {
	f.Helper()
	time.Sleep(d) //nolint:forbidigo // The time of a bubble.
	synctest.Wait()
}

// want compares what was new since it was last called, and whether the whole stream was read since then.
func (f *followed) want(isRead bool, news ...string) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.news)
	if diff := cmp.Diff(news, f.news); diff != "" || (f.epochs > 0) != isRead {
		f.Errorf("the stream was read %d times, want at least once: %t; news (-want +got):\n%s", f.epochs, isRead, diff)
	}
	f.news, f.epochs = nil, 0
}

// wantLast compares the last change of a Secret with a resourceVersion and the sequence that it has on the stream.
func (f *followed) wantLast(name, version string, seq uint64) {
	f.Helper()
	var last *events.LastChange
	f.state.Each(events.KindSecret, "shop", func(of string, c *events.LastChange) {
		if of == name {
			last = c
		}
	})
	if last == nil || last.ResourceVersion != version || last.Seq != seq {
		f.Errorf("the last change of %s is %+v, want version %s at %d", name, last, version, seq)
	}
}

func secretNamed(name string) events.Source {
	return events.Source{Kind: events.KindSecret, Namespace: "shop", Name: name}
}

// changeOf is a change of a Secret.
func changeOf(name, version string) events.Change {
	fingerprint := "k0a1b2c3d:" + strings.Repeat("0", 32-len(version)) + version
	return events.Change{
		Cluster: "demo", Source: secretNamed(name), Verb: events.VerbChanged, UID: "uid-" + name, ResourceVersion: version, ChangedAt: version,
		Fingerprint: fingerprint, Time: time.Now(), Keys: map[string]events.Key{"password": {Fingerprint: fingerprint, ChangedAt: version}},
	}
}

// publish publishes changes, each as the successor of what the stream has.
func (f *followed) publish(changes ...events.Change) {
	f.Helper()
	for _, change := range changes {
		var expected uint64
		if last, err := f.bus.Last(f.Context(), events.Subject("demo", change.Source)); err == nil {
			expected = last.Seq
		}
		if _, err := f.bus.PublishChange(f.Context(), change, expected); err != nil {
			f.Fatal(err)
		}
	}
}

// changes returns the stream.
func (f *followed) changes() jetstream.Stream {
	f.Helper()
	stream, err := f.js.Stream(f.Context(), events.StreamChanges)
	testkit.Must(f, err)
	return stream
}

// restart stops the server, and starts it again after between.
func (f *followed) restart(between func()) {
	f.Helper()
	f.nats.Stop()
	between()
	f.nats.Start()
	f.pass(time.Second)
}

func TestAFollowerKnowsWhatTheStreamHasAndThenWhatComes(t *testing.T) {
	following(t, func(f *followed) {
		f.publish(changeOf("db", "1"), changeOf("web", "2"), changeOf("web", "3"))
		defer f.start()()
		f.pass(time.Second)
		f.want(true, "db@1", "web@3")
		gone := changeOf("web", "3")
		gone.Verb = events.VerbDeleted
		f.publish(changeOf("db", "4"), gone)
		f.pass(time.Second)
		f.want(false, "db@4", "web@3")
		f.wantLast("db", "4", 4)
		f.pass(time.Hour)
		f.want(true) // It is read once an hour.
	})
}

func TestAFollowerReadsTheStoresThatOthersWatch(t *testing.T) {
	following(t, func(f *followed) {
		defer f.start()()
		f.pass(time.Second)
		f.want(true)
		path := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "kv", Path: "db"}
		for _, cluster := range []string{"hub", "west"} {
			change := changeOf("", "7")
			change.Cluster, change.Source, change.Verb, change.UID = cluster, path.Source(), events.VerbRotated, "bao"
			change.Keys, change.Truncated, change.Store = nil, true, &events.StoreState{Engine: events.EngineKV, Version: 7, Revision: "7"}
			if _, err := f.open(cluster, f.nc).PublishChange(f.Context(), change, 0); err != nil {
				f.Fatal(err)
			}
		}
		f.pass(time.Second)
		f.want(false, "bao/root/kv/db@7")
	})
}

func TestAFollowerKeepsWhatARestoredStreamLacks(t *testing.T) {
	following(t, func(f *followed) {
		backup := f.TempDir()
		f.publish(changeOf("db", "1"))
		f.restart(func() {
			testkit.Must(f, os.CopyFS(backup, os.DirFS(f.nats.Dir())))
		})
		f.publish(changeOf("db", "2"), changeOf("web", "3"))
		defer f.start()()
		f.pass(time.Second)
		f.want(true, "db@2", "web@3")
		f.restart(func() {
			testkit.Must(f, os.RemoveAll(f.nats.Dir()))
			testkit.Must(f, os.CopyFS(f.nats.Dir(), os.DirFS(backup)))
		})
		f.pass(time.Minute)
		f.want(true)
		f.wantLast("db", "2", 2)
		f.wantLast("web", "3", 3)
		// The sequences begin again where the stream was. What is published again is no news.
		f.publish(changeOf("web", "3"), changeOf("db", "4"))
		f.pass(time.Second)
		f.want(false, "db@4")
		f.wantLast("web", "3", 2)
		f.wantLast("db", "4", 3)
	})
}

func TestAFollowerWaitsForAServerThatIsSilent(t *testing.T) {
	following(t, func(f *followed) {
		f.publish(changeOf("db", "1"))
		nc := f.nats.Connect()
		defer nc.Close()
		follower := bus.NewFollower(f.open("demo", nc), nil, f)
		ctx, cancel := context.WithCancel(f.Context())
		ended := make(chan struct{})
		f.restart(func() {
			go func() {
				defer close(ended)
				follower.Run(ctx)
			}()
			f.pass(10 * time.Minute)
			f.want(false)
		})
		defer func() {
			cancel()
			<-ended
		}()
		f.pass(time.Minute)
		f.want(true, "db@1")
		f.restart(func() { f.pass(10 * time.Minute) })
		f.pass(time.Minute)
		f.want(true)
		f.publish(changeOf("db", "2"))
		f.pass(time.Second)
		f.want(false, "db@2")
	})
}

func TestAFollowerReadsTheStreamAgainWhenAConsumerIsLost(t *testing.T) {
	following(t, func(f *followed) {
		f.publish(changeOf("db", "1"))
		defer f.start()()
		f.pass(time.Second)
		f.want(true, "db@1")
		names := f.changes().ConsumerNames(f.Context())
		for name := range names.Name() {
			testkit.Must(f, f.changes().DeleteConsumer(f.Context(), name))
		}
		testkit.Must(f, names.Err())
		f.publish(changeOf("db", "2"))
		f.pass(5 * time.Second)
		f.want(true, "db@2")
	})
}

func TestAFollowerSaysThatAnEventCannotBeRead(t *testing.T) {
	following(t, func(f *followed) {
		f.publish(changeOf("db", "1"))
		defer f.start()()
		f.pass(time.Second)
		f.want(true, "db@1")
		if _, err := f.js.Publish(f.Context(), events.Subject("demo", secretNamed("db")), []byte("not an event")); err != nil {
			f.Fatal(err)
		}
		f.pass(time.Second)
		f.want(false)
		f.wantLast("db", "1", 1)
		if !f.state.IsUnreadable(secretNamed("db")) {
			f.Error("it is not known that there is a later event")
		}
		f.publish(changeOf("db", "2"))
		f.pass(time.Second)
		f.want(false, "db@2")
		if f.state.IsUnreadable(secretNamed("db")) {
			f.Error("the event that cannot be read still counts")
		}
	})
}
