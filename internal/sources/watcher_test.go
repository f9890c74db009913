package sources

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/events/embedded"
	"github.com/keyturn/keyturn/tests/testkit"
)

const testCluster = "prod-eu"

// bench is a NATS server with the streams, and a cluster with objects, for watchers to run between.
type bench struct {
	*testing.T
	nc      *nats.Conn
	js      jetstream.JetStream
	bus     *events.Bus
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	keyFile string
	version int
	log     *lockedBuffer
}

// lockedBuffer is a buffer that several goroutines may write to.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func newBench(t *testing.T, objects ...runtime.Object) *bench {
	t.Helper()
	b := &bench{T: t, client: fake.NewClientset(objects...), version: 100, log: &lockedBuffer{}}
	b.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		externalSecretSource.custom: "ExternalSecretList", certificateSource.custom: "CertificateList",
	})
	server, err := embedded.Start(embedded.Options{StoreDir: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	if b.nc, err = nats.Connect("", server.ClientOption()); err != nil {
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
	b.keyFile = filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(b.keyFile, []byte(keyLine(1, minKeyBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// options are those of a watcher of this bench.
func (b *bench) options() Options {
	options := DefaultOptions()
	options.Cluster, options.KeyFile, options.Client, options.Dynamic = testCluster, b.keyFile, b.client, b.dynamic
	options.Logger = slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	options.Tracer, options.Meter = tracenoop.NewTracerProvider().Tracer(""), metricnoop.NewMeterProvider().Meter("")
	return options
}

// start runs a watcher until the returned function is called.
func (b *bench) start(options Options) (*Watcher, func()) {
	b.Helper()
	w, err := New(options)
	if err != nil {
		b.Fatal(err)
	}
	stop := testkit.Run(b.T, "watcher", func(ctx context.Context) error { return w.Run(ctx, b.bus) })
	return w, stop
}

// ready runs a watcher and waits until it has seen every source.
func (b *bench) ready(options Options) func() {
	b.Helper()
	_, stop := b.startReady(options)
	return stop
}

func (b *bench) startReady(options Options) (*Watcher, func()) {
	b.Helper()
	w, stop := b.start(options)
	b.eventually("the watcher is ready", func() bool { return w.Ready() == nil })
	return w, stop
}

func (b *bench) eventually(what string, holds func() bool) {
	b.Helper()
	testkit.Eventually(b.T, what, holds, b.log.String)
}

// history is every event that was ever published, in order, without the namespace.
func (b *bench) history() []string {
	b.Helper()
	var list []string
	for _, change := range b.changes() {
		if change.Status != nil {
			list = append(list, change.Source.String()+" "+toldStanding(change))
			continue
		}
		list = append(list, change.Source.String()+" "+told(change))
	}
	return list
}

func (b *bench) changes() []events.Change {
	b.Helper()
	stream, err := b.js.Stream(b.Context(), events.StreamHistory)
	if err != nil {
		b.Fatal(err)
	}
	var list []events.Change
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		raw, err := stream.GetMsg(b.Context(), seq)
		if err != nil {
			b.Fatal(err)
		}
		if bytes.Contains(raw.Data, []byte(canary)) || strings.Contains(raw.Header.Get("ce-subject"), canary) {
			b.Errorf("the value was published: %s", raw.Data)
		}
		event, err := events.FromMsg(raw.Subject, raw.Header, raw.Data)
		if err != nil {
			b.Fatal(err)
		}
		change, err := events.ParseChange(event)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, change)
	}
	return list
}

// want waits until as many events were published as are wanted, and compares them.
func (b *bench) want(wanted ...string) {
	b.Helper()
	var got []string
	b.eventually(strconv.Itoa(len(wanted))+" events are published", func() bool {
		got = b.history()
		return len(got) >= len(wanted)
	})
	if diff := cmp.Diff(wanted, got); diff != "" {
		b.Fatalf("events (-want +got):\n%s", diff)
	}
}

func secretOf(namespace, name, uid, version, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: version},
		Data:       map[string][]byte{"a": []byte(canary + value), "b": []byte(canary)},
	}
}

func (b *bench) create(secret *corev1.Secret) {
	b.Helper()
	if _, err := b.client.CoreV1().Secrets(secret.Namespace).Create(b.Context(), secret, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) update(secret *corev1.Secret) {
	b.Helper()
	if _, err := b.client.CoreV1().Secrets(secret.Namespace).Update(b.Context(), secret, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) delete(namespace, name string) {
	b.Helper()
	if err := b.client.CoreV1().Secrets(namespace).Delete(b.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

func TestWatcherPublishesWhatHappens(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "u2", ResourceVersion: "2"},
		Data:       map[string]string{"level": "debug"},
	})
	options := b.options()
	options.Workers = 1 // so that the order is known
	stop := b.ready(options)
	b.eventually("both sources are observed", func() bool { return len(b.history()) == 2 })

	b.update(secretOf("shop", "db", "u1", "11", "two"))
	b.eventually("the change is published", func() bool { return len(b.history()) == 3 })
	b.update(secretOf("shop", "db", "u1", "12", "two")) // metadata only
	b.create(secretOf("shop", "new", "u3", "13", "one"))
	b.eventually("the creation is published", func() bool { return len(b.history()) == 4 })
	b.delete("shop", "db")
	b.eventually("the deletion is published", func() bool { return len(b.history()) == 5 })
	b.create(secretOf("shop", "db", "u4", "15", "two"))
	b.eventually("the return is published", func() bool { return len(b.history()) == 6 })
	stop()

	got := b.history()
	if got[0] > got[1] { // the two kinds are listed at once
		got[0], got[1] = got[1], got[0]
	}
	want := []string{
		"configmap/app observed u2/2 {level} []",
		"secret/db observed u1/1 {a b} []",
		"secret/db changed u1/11@11 {a@11 b} [a] previous",
		"secret/new changed u3/13@13 {a b} [a b] created",
		"secret/db deleted u1/11@11 {a@11 b} []",
		"secret/db observed u4/15@11 {a@11 b} [] previous",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if strings.Contains(b.log.String(), canary) {
		t.Errorf("the value was logged:\n%s", b.log)
	}
}

func TestWatcherFindsWhatHappenedWhileItWasAway(t *testing.T) {
	b := newBench(t, secretOf("shop", "same", "u1", "1", "one"))
	options := b.options()
	stop := b.ready(options)
	b.want("secret/same observed u1/1 {a b} []")
	b.create(secretOf("shop", "changes", "u2", "2", "one"))
	b.eventually("it is published", func() bool { return len(b.history()) == 2 })
	b.create(secretOf("shop", "goes", "u3", "3", "one"))
	b.eventually("it is published", func() bool { return len(b.history()) == 3 })
	stop()

	b.update(secretOf("shop", "same", "u1", "10", "one"))
	b.update(secretOf("shop", "changes", "u2", "11", "two"))
	b.update(secretOf("shop", "changes", "u2", "12", "three"))
	b.delete("shop", "goes")
	stop = b.ready(options)
	b.eventually("what happened is published", func() bool { return len(b.history()) == 5 })
	stop()
	got := b.history()[3:]
	if got[0] > got[1] { // what is missing is known once all is listed, and sources have no order
		got[0], got[1] = got[1], got[0]
	}
	want := []string{
		"secret/changes changed u2/12@12 {a@12 b} [a] previous",
		"secret/goes deleted u3/3@3 {a b} []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	b.ready(options)()
	if got := b.history(); len(got) != 5 {
		t.Errorf("after one more restart there are also %v", got[5:])
	}
}

func TestWatchersOfOneClusterSayEachChangeOnce(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "0"))
	defer b.ready(b.options())()
	defer b.ready(b.options())()
	want := []string{"secret/db observed u1/1 {a b} []"}
	for i := range 20 {
		version := strconv.Itoa(i + 2)
		b.update(secretOf("shop", "db", "u1", version, version))
		want = append(want, "secret/db changed u1/"+version+"@"+version+" {a@"+version+" b} [a] previous")
		b.want(want...)
	}
	// The stream of last events follows the history, and other watchers add nothing to it.
	b.eventually("the last of 21 events has their number as its sequence", func() bool {
		stored, err := b.bus.Last(t.Context(), events.Subject(testCluster, testSource))
		return err == nil && stored.Seq == 21
	})
}

func TestWatcherSupersedesWhatCannotBeRead(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	ack, err := b.js.Publish(t.Context(), events.Subject(testCluster, testSource), []byte("no event"))
	if err != nil {
		t.Fatal(err)
	}
	stop := b.ready(b.options())
	b.want("secret/db observed u1/1 {a b} []")

	// And one that comes while the watcher runs.
	if ack, err = b.js.Publish(t.Context(), events.Subject(testCluster, testSource), []byte("no event either")); err != nil {
		t.Fatal(err)
	}
	b.update(secretOf("shop", "db", "u1", "2", "two"))
	b.eventually("the change is the last event", func() bool {
		stored, err := b.bus.Last(t.Context(), events.Subject(testCluster, testSource))
		return err == nil && stored.Seq > ack.Sequence && stored.Err == nil
	})
	stop()
	b.want("secret/db observed u1/1 {a b} []", "secret/db changed u1/2@2 {a@2 b} [a] previous")
}

func TestWatcherKeepsToItsScope(t *testing.T) {
	t.Run("of namespaces by name", func(t *testing.T) {
		b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), secretOf("bank", "db", "u2", "2", "one"))
		options := b.options()
		options.Namespaces, options.Kinds = []string{"shop"}, []string{"secret"}
		b.ready(options)()
		b.want("secret/db observed u1/1 {a b} []")
	})
	t.Run("of namespaces by label, also as it changes", func(t *testing.T) {
		b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), secretOf("bank", "db", "u2", "2", "one"),
			namespaceOf("shop", "1", "a"), namespaceOf("bank", "1", "b"))
		options := b.options()
		options.NamespaceSelector = "team=a"
		stop := b.ready(options)
		b.want("secret/db observed u1/1 {a b} []")
		if _, err := b.client.CoreV1().Namespaces().Update(t.Context(), namespaceOf("bank", "2", "a"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.want("secret/db observed u1/1 {a b} []", "secret/db observed u2/2 {a b} []")
		stop()
	})
	t.Run("and leaves alone what it does not watch any more", func(t *testing.T) {
		b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), secretOf("bank", "db", "u2", "2", "one"))
		b.ready(b.options())()
		b.eventually("both are observed", func() bool { return len(b.history()) == 2 })
		options := b.options()
		options.Namespaces = []string{"shop"}
		b.ready(options)()
		if got := b.history(); len(got) != 2 {
			t.Errorf("there are also %v", got[2:])
		}
	})
}

func TestWatcherSaysWhichRightIsMissing(t *testing.T) {
	for resource, role := range map[string]string{
		"secrets": "deploy/base/rbac.yaml", "namespaces": "deploy/components/namespace-selector/rbac.yaml",
	} {
		t.Run(resource, func(t *testing.T) {
			b := newBench(t)
			b.client.PrependReactor("list", resource, func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
			})
			options := b.options()
			options.NamespaceSelector = "keyturn=on"
			w, stop := b.start(options)
			if err := w.Ready(); err == nil {
				t.Error("it is ready before it has asked")
			}
			if _, err := os.Stat("../../" + role); err != nil {
				t.Error(err)
			}
			want := "no permission to list and watch " + resource + "; grant it as in " + role
			b.eventually("it says what is missing", func() bool {
				err := w.Ready()
				return err != nil && strings.Contains(err.Error(), want) && apierrors.IsForbidden(err)
			})
			stop()
			if w.Ready() == nil {
				t.Errorf("it is ready though it was never told of %s", resource)
			}
		})
	}
}

func TestWatcherEndsWhileNATSIsAway(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	b.nc.Close()
	w, stop := b.start(b.options())
	b.eventually("it says so", func() bool { return strings.Contains(b.log.String(), "cannot read the last events") })
	stop()
	if w.Ready() == nil {
		t.Error("it is ready")
	}
}

func TestNewRefuses(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"options that are not valid", func(o *Options) { o.Workers = 0 }, "--publish-workers: 0 is too few, want 1 or more"},
		{"a key file that is not there", func(o *Options) { o.KeyFile += "x" }, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := b.options()
			tt.change(&options)
			if _, err := New(options); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// last is the last event of the source of these tests.
func (b *bench) lastEvent() string {
	stored, err := b.bus.Last(b.Context(), events.Subject(testCluster, testSource))
	if err != nil {
		return err.Error()
	}
	change, err := stored.Change()
	if err != nil {
		return err.Error()
	}
	return told(change)
}

func TestWatcherTriesAgainWhatCouldNotBePublished(t *testing.T) {
	b := newBench(t)
	w, stop := b.startReady(b.options())
	defer stop()
	if err := b.js.DeleteStream(t.Context(), events.StreamHistory); err != nil {
		t.Fatal(err)
	}
	b.create(secretOf("shop", "db", "u1", "1", "one"))
	failures := func() int { return strings.Count(b.log.String(), "cannot publish an event; retrying") }
	b.eventually("it says so", func() bool { return failures() > 0 })
	b.update(secretOf("shop", "db", "u1", "2", "two"))
	b.eventually("the watcher has seen it", func() bool { return w.cached.lookup(testSource).ResourceVersion == "2" })
	// A try that began before has the first content. It may last for as long as NATS waits for an answer.
	before := failures()
	b.eventually("a try of the second content has failed", func() bool { return failures() > before+1 })
	if err := events.Declare(t.Context(), b.js, 1); err != nil {
		t.Fatal(err)
	}
	// Nothing is forgotten between tries, also that it is new.
	b.eventually("the last content is published as new", func() bool { return b.lastEvent() == "changed u1/2@2 {a b} [a b] created" })
}

func TestWatcherTellsAnewWhatTheStreamHasLost(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	defer b.ready(b.options())()
	b.want("secret/db observed u1/1 {a b} []")
	stream, err := b.js.Stream(t.Context(), events.StreamChanges)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.update(secretOf("shop", "db", "u1", "2", "two"))
	b.eventually("the source is observed again", func() bool { return b.lastEvent() == "observed u1/2 {a b} []" })
}
