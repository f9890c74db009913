package sources

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

const testCluster = "prod-eu"

// podStatuses is the resource of the parts of a SecretProviderClass.
var podStatuses = schema.GroupVersionResource{Group: "secrets-store.csi.x-k8s.io", Version: "v1", Resource: "secretproviderclasspodstatuses"}

// bench is a NATS server with the streams, and a cluster with objects, for watchers to run between.
type bench struct {
	*testing.T
	nc      *nats.Conn
	js      jetstream.JetStream
	bus     *bus.Bus
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	keyFile string
	version int
	log     *testkit.Log
}

func newBench(t *testing.T, objects ...runtime.Object) *bench {
	t.Helper()
	b := &bench{T: t, client: fake.NewClientset(objects...), version: 100, log: &testkit.Log{}}
	b.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		resourceOf(t, events.KindExternalSecret): "ExternalSecretList", resourceOf(t, events.KindCertificate): "CertificateList",
		resourceOf(t, events.KindSecretProviderClass): "SecretProviderClassList", podStatuses: "SecretProviderClassPodStatusList",
	})
	b.nc, b.js = natstest.Streams(t)
	var err error
	b.bus, err = bus.Open(t.Context(), b.nc, testCluster, nil)
	testkit.Must(t, err)
	b.keyFile = keyFileOf(t)
	return b
}

// options returns the options of a watcher of this bench.
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
	testkit.Must(b, err)
	stop := testkit.Run(b.T, "watcher", func(ctx context.Context) error { return w.Run(ctx, b.bus) })
	return w, stop
}

// ready runs a watcher and waits until it has seen every source, and has published what there is to publish.
func (b *bench) ready(options Options) func() {
	b.Helper()
	_, stop := b.startReady(options)
	return stop
}

func (b *bench) startReady(options Options) (*Watcher, func()) {
	b.Helper()
	before := len(b.client.Actions())
	w, stop := b.start(options)
	b.eventually("the watcher is ready", func() bool { return w.Ready() == nil })
	// It is ready when it has listed. The API server of these tests does not tell a later watch of what is deleted in between.
	b.eventually("what was listed is watched", func() bool {
		listed := map[string]bool{}
		for _, action := range b.client.Actions()[before:] {
			switch of := action.GetNamespace() + "/" + action.GetResource().Resource; action.GetVerb() {
			case "list":
				listed[of] = true
			case "watch":
				delete(listed, of)
			}
		}
		return len(listed) == 0
	})
	// A source whose event has no answer waits for a retry, which does not keep a watcher from being ready. A watcher that ends drops it.
	b.eventually("what was listed is published", func() bool {
		w.pending.mu.Lock()
		defer w.pending.mu.Unlock()
		return len(w.pending.inWork) == 0 && len(w.pending.entries) == 0
	})
	return w, stop
}

func (b *bench) eventually(what string, holds func() bool) {
	b.Helper()
	testkit.Eventually(b.T, what, holds, b.log.String)
}

// history returns every event that was ever published, in order, without the namespace.
func (b *bench) history() []string {
	b.Helper()
	var list []string
	for _, change := range b.changes() {
		list = append(list, change.Source.String()+" "+told(change))
	}
	return list
}

// changes returns every event that was ever published, in order, once the last one is on both streams. It retries while the server does not answer
// in time, for example because the disk is busy.
func (b *bench) changes() []events.Change {
	b.Helper()
	var stored []events.Stored
	b.eventually("the history can be read", func() bool {
		var err error
		if stored, err = b.stored(); err != nil && !bus.IsSilence(err) {
			b.Fatal(err)
		}
		return err == nil && (len(stored) == 0 || b.isOnChanges(stored[len(stored)-1]))
	})
	list := make([]events.Change, 0, len(stored))
	for _, of := range stored {
		if text := of.Event().String(); strings.Contains(text, canary) {
			b.Errorf("the value was published: %s", text)
		}
		change, err := of.Change()
		testkit.Must(b, err)
		list = append(list, change)
	}
	return list
}

// stored returns what is in the history.
func (b *bench) stored() ([]events.Stored, error) {
	stream, err := b.js.Stream(b.Context(), events.StreamHistory)
	if err != nil {
		return nil, err
	}
	var list []events.Stored
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		raw, err := stream.GetMsg(b.Context(), seq)
		if err != nil {
			return nil, err
		}
		subject := events.ChangesRoot + strings.TrimPrefix(raw.Subject, events.HistoryRoot)
		list = append(list, events.NewStored(subject, seq, raw.Time, raw.Header, raw.Data))
	}
	return list, nil
}

// isOnChanges reports whether an event of StreamHistory, or a later one about its source, is also on StreamChanges. Neither stream is always first.
func (b *bench) isOnChanges(of events.Stored) bool {
	b.Helper()
	last, ok := b.lastOn(of.Subject)
	return ok && (last.ID() == of.ID() || last.Time.After(of.Time))
}

// lastOn returns the last event on a subject of StreamChanges. It returns false if there is none, or the server does not answer in time.
func (b *bench) lastOn(subject string) (events.Stored, bool) {
	b.Helper()
	stored, err := b.bus.Last(b.Context(), subject)
	if err != nil && !errors.Is(err, events.ErrNotFound) && !bus.IsSilence(err) {
		b.Fatal(err)
	}
	return stored, err == nil
}

// lastSeq returns the sequence of the last event on StreamChanges. It returns zero if the server does not answer in time.
func (b *bench) lastSeq() uint64 {
	b.Helper()
	stream, err := b.js.Stream(b.Context(), events.StreamChanges)
	switch {
	case bus.IsSilence(err):
		return 0
	case err != nil:
		b.Fatal(err)
	}
	return stream.CachedInfo().State.LastSeq
}

// want waits until len(wanted) events were published, and compares them.
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

func (b *bench) create(secret *corev1.Secret) {
	b.Helper()
	_, err := b.client.CoreV1().Secrets(secret.Namespace).Create(b.Context(), secret, metav1.CreateOptions{})
	testkit.Must(b, err)
}

func (b *bench) update(secret *corev1.Secret) {
	b.Helper()
	_, err := b.client.CoreV1().Secrets(secret.Namespace).Update(b.Context(), secret, metav1.UpdateOptions{})
	testkit.Must(b, err)
}

func (b *bench) delete(namespace, name string) {
	b.Helper()
	testkit.Must(b, b.client.CoreV1().Secrets(namespace).Delete(b.Context(), name, metav1.DeleteOptions{}))
}
