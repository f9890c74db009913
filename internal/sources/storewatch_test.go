package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"
)

// withStore adds a store to the options, with the fields, and a receiver of its lines. It returns the address of the receiver, which is
// empty until it listens.
func (b *bench) withStore(options *Options, fields string) (listening func() string) {
	b.Helper()
	options.OpenBao.ConfigFile = filepath.Join(b.TempDir(), "stores.yaml")
	if err := os.WriteFile(options.OpenBao.ConfigFile, []byte("stores: [{name: bao, address: 'http://bao'"+fields+"}]"), 0o600); err != nil {
		b.Fatal(err)
	}
	var address atomic.Value
	options.OpenBao.SocketListen = "127.0.0.1:0"
	options.OpenBao.Listen = func(ctx context.Context, network, at string) (net.Listener, error) {
		listener, err := new(net.ListenConfig).Listen(ctx, network, at)
		if err == nil {
			address.Store(listener.Addr().String())
		}
		return listener, err
	}
	return func() string { text, _ := address.Load().(string); return text }
}

// writeInStore sends the line of a write to the receiver of a store.
func (b *bench) writeInStore(address string) {
	b.Helper()
	log, err := os.ReadFile("openbao/testdata/openbao-2.6.2.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	connection, err := new(net.Dialer).DialContext(b.Context(), "tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close()
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte(`"type":"response"`)) && bytes.Contains(line, []byte(`"path":"secret/data/shop/db"`)) {
			fmt.Fprintf(connection, "%s", line)
			return
		}
	}
	b.Fatal("no such line")
}

// published reports whether an event of the source and verb was ever published.
func (b *bench) published(source, verb string) bool {
	b.Helper()
	for _, change := range b.changes() {
		if change.Source.String() == source && string(change.Verb) == verb {
			return true
		}
	}
	return false
}

func TestAKindThatCannotBeListedKeepsNothingElseFromBeingWatched(t *testing.T) {
	forbidden := func(resource schema.GroupResource) error {
		return apierrors.NewForbidden(resource, "", errors.New("no"))
	}
	tests := []struct {
		name     string
		resource schema.GroupResource
		err      func(schema.GroupResource) error
		ready    bool
	}{
		{
			name: "a custom kind whose conversion webhook is down", resource: externalSecretSource.custom.GroupResource(), ready: true,
			err: func(schema.GroupResource) error {
				return apierrors.NewInternalError(errors.New("conversion webhook failed"))
			},
		},
		{name: "a custom kind that may not be listed", resource: certificateSource.custom.GroupResource(), err: forbidden},
		{name: "Secrets that may not be listed", resource: schema.GroupResource{Resource: "secrets"}, err: forbidden},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "u", ResourceVersion: "1"}})
			b.ready(b.options())()
			if err := b.client.CoreV1().ConfigMaps("shop").Delete(t.Context(), "app", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			fail := func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, tt.err(tt.resource) }
			b.client.PrependReactor("list", tt.resource.Resource, fail)
			b.dynamic.PrependReactor("list", tt.resource.Resource, fail)

			options := b.everyKind()
			listening := b.withStore(&options, "")
			w, stop := b.start(options)
			defer stop()
			b.eventually("the receiver listens", func() bool { return listening() != "" })
			b.writeInStore(listening())
			b.eventually("the write in the store is published", func() bool { return b.published("openbao/bao/root/secret/shop/db", "rotated") })
			b.eventually("what was deleted meanwhile is published", func() bool { return b.published("configmap/app", "deleted") })
			if tt.ready {
				b.eventually("it is ready", func() bool { return w.Ready() == nil })
				return
			}
			b.eventually("it says what is missing", func() bool { return apierrors.IsForbidden(w.Ready()) })
		})
	}
}

// unreachable is a store that does not answer.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route to host")
}

func TestAStoreThatIsDownDoesNotKeepTheWatcherFromBeingReady(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	options := b.options()
	b.withStore(&options, ", auth: {token: a}, poll: {mounts: [secret]}")
	options.OpenBao.Transport = unreachable{}
	defer b.ready(options)()
	b.want("secret/db observed u1/1 {a b} []")
}

func TestTheWatcherEndsWhenAStoresReceiverCannotListen(t *testing.T) {
	b := newBench(t)
	options := b.options()
	b.withStore(&options, "")
	options.OpenBao.Listen = func(context.Context, string, string) (net.Listener, error) { return nil, errors.New("in use") }
	w, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context(), b.bus); err == nil || err.Error() != "watching secret stores: listening for lines of store bao: in use" {
		t.Errorf("it ended with %v", err)
	}
}
