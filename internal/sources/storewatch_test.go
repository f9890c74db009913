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
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// auditToken is the token of whoever posts the lines of a store.
const auditToken = "0123456789abcdef0123"

// withStore adds a store that does not answer to the options, and a receiver of its lines. It returns the address of the receiver, which is empty
// until it listens.
func (b *bench) withStore(options *Options) (listening func() string) {
	b.Helper()
	tokens := filepath.Join(b.TempDir(), "tokens")
	options.OpenBao.ConfigFile = filepath.Join(b.TempDir(), "stores.yaml")
	for file, content := range map[string]string{
		options.OpenBao.ConfigFile: "stores: [{name: bao, address: 'http://bao', auth: {token: a}}]\naudit: {tokenFile: " + tokens + "}",
		tokens:                     auditToken,
	} {
		testkit.Must(b, os.WriteFile(file, []byte(content), 0o600))
	}
	var address atomic.Value
	options.OpenBao.AuditListen, options.OpenBao.Transport = "127.0.0.1:0", unreachable{}
	options.OpenBao.Listen = func(ctx context.Context, network, at string) (net.Listener, error) {
		listener, err := new(net.ListenConfig).Listen(ctx, network, at)
		if err == nil {
			address.Store(listener.Addr().String())
		}
		return listener, err
	}
	return func() string { text, _ := address.Load().(string); return text }
}

// writeInStore posts the line of a write to the receiver of a store.
func (b *bench) writeInStore(address string) {
	b.Helper()
	postLines(b.T, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, address, fmt.Appendf(nil,
		`{"time":%[1]q,"type":"response","request":{"id":"1","operation":"create","mount_type":"kv","mount_point":"secret/",`+
			`"path":"secret/data/shop/db"},"response":{"data":{"version":1,"created_time":%[1]q}}}`, time.Now().UTC().Format(time.RFC3339Nano)))
}

// postLines posts lines to the receiver at an address.
func postLines(t testing.TB, client *http.Client, address string, lines []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/v1/audit/bao", bytes.NewReader(lines))
	testkit.Must(t, err)
	request.Header.Set("Authorization", "Bearer "+auditToken)
	response, err := client.Do(request)
	testkit.Must(t, err)
	response.Body.Close()
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
	for _, tt := range []struct {
		name     string
		resource schema.GroupResource
		err      func(schema.GroupResource) error
		ready    bool
	}{
		{
			name: "a custom kind whose conversion webhook is down", resource: resourceOf(t, events.KindExternalSecret).GroupResource(), ready: true,
			err: func(schema.GroupResource) error {
				return apierrors.NewInternalError(errors.New("conversion webhook failed"))
			},
		},
		{name: "a custom kind that may not be listed", resource: resourceOf(t, events.KindCertificate).GroupResource(), err: forbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "u", ResourceVersion: "1"}})
			b.ready(b.options())()
			testkit.Must(t, b.client.CoreV1().ConfigMaps("shop").Delete(t.Context(), "app", metav1.DeleteOptions{}))
			fail := func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, tt.err(tt.resource) }
			b.client.PrependReactor("list", tt.resource.Resource, fail)
			b.dynamic.PrependReactor("list", tt.resource.Resource, fail)

			options := b.everyKind()
			listening := b.withStore(&options)
			options.OpenBao.Transport = answers{
				"/v1/sys/internal/ui/mounts":  `{"data":{"secret":{"secret/":{"type":"kv","options":{"version":"2"}}}}}`,
				"/v1/secret/metadata/shop/db": `{"data":{"current_version":1,"versions":{"1":{"created_time":"2026-03-14T15:00:00Z"}}}}`,
			}
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

func TestTheWatcherEndsWhenAStoresReceiverCannotListen(t *testing.T) {
	b := newBench(t)
	options := b.options()
	b.withStore(&options)
	options.OpenBao.Listen = func(context.Context, string, string) (net.Listener, error) { return nil, errors.New("in use") }
	w, err := New(options)
	testkit.Must(t, err)
	if err := w.Run(t.Context(), b.bus); err == nil || err.Error() != "watching secret stores: listening for audit requests: in use" {
		t.Errorf("it ended with %v", err)
	}
}
