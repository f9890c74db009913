package kinds

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/internal/sources/openbao"
	"github.com/keyturn/keyturn/tests/testkit"
)

// testSource is the source of tests that need only one.
var testSource = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}

var epoch = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// canary is a value that must not be found in what is kept.
const canary = "CANARY-5f0c2a4e"

const testTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// everyField compares structs by all of their fields.
var everyField = cmp.Exporter(func(reflect.Type) bool { return true })

// keyringOf makes a ring of test keys, each a number repeated, the current one first.
func keyringOf(numbers ...byte) *Keyring {
	ring := &Keyring{}
	for _, number := range numbers {
		ring.keys = append(ring.keys, newKey(bytes.Repeat([]byte{number}, minKeyBytes)))
	}
	return ring
}

// content is the data of a source, as tests write it.
type content map[string]string

func (c content) data() map[string][]byte {
	data := make(map[string][]byte, len(c))
	for name, value := range c {
		data[name] = []byte(value)
	}
	return data
}

// objectOf is the source at a resourceVersion, reduced under the keys of a ring.
func objectOf(ring *Keyring, uid string, version int, data content) *Object {
	return newObject(ring, testSource.Kind, &metav1.ObjectMeta{
		Namespace: testSource.Namespace, Name: testSource.Name,
		UID: types.UID(uid), ResourceVersion: strconv.Itoa(version),
	}, data.data())
}

// mustLast returns the last event once the change is published.
func mustLast(t testing.TB, change events.Change) *LastEvent {
	t.Helper()
	entry, err := NewLastEvent(1, change)
	testkit.Must(t, err)
	return entry
}

// printed is a fingerprint under the key with the id, of one digit.
func printed(keyID, digit string) string {
	return "k" + keyID + ":" + strings.Repeat(digit, 2*len(sum{}))
}

// customOf is a custom resource with the content, in JSON.
func customOf(t testing.TB, content string) *unstructured.Unstructured {
	t.Helper()
	resource := &unstructured.Unstructured{}
	testkit.Must(t, json.Unmarshal([]byte(content), &resource.Object))
	return resource
}

// externalSecretOf is an ExternalSecret that is ready and writes the Secret of its name.
func externalSecretOf(t testing.TB, name string, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	resource := customOf(t, `{"metadata": {"namespace": "shop", "name": "`+name+`", "uid": "es", "resourceVersion": "2"},
		"status": {"syncedResourceVersion": "1-a", "conditions": [{"type": "Ready", "status": "True", "reason": "RTrue"}]}}`)
	resource.SetAnnotations(annotations)
	return resource
}

func secretOf(name, uid, version, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid), ResourceVersion: version},
		Data:       map[string][]byte{"a": []byte(value)},
	}
}

// pemOf is a certificate in PEM with a serial number and an end.
func pemOf(t testing.TB, serial *big.Int, notAfter time.Time) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{SerialNumber: serial, NotBefore: notAfter.AddDate(0, -1, 0), NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	testkit.Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// reducedOf is an object as the informers of a kind keep it.
func reducedOf(t testing.TB, kind Listed, obj any) *Object {
	t.Helper()
	reduced, ok := kind.Reduce(keyringOf(1), obj)
	if !ok {
		t.Fatalf("%s does not know its own", kind.Listing().Kind)
	}
	return reduced
}

// heededOf is an object as an informer keeps it.
func heededOf(t testing.TB, kind Listed, ring *Keyring, keys reloader.Annotations, obj any) *Object {
	t.Helper()
	reduced, ok := Reduce(kind, ring, keys, obj)
	if !ok {
		t.Fatalf("%s does not know its own", kind.Listing().Kind)
	}
	return reduced
}

// cacheOf is a cache that holds objects.
func cacheOf(objects ...*Object) Cache {
	cached := make(Cache)
	for _, seen := range objects {
		kind := seen.Source.Kind
		if cached[kind] == nil {
			cached[kind] = []*Store{NewStore(kind)}
		}
		cached[kind][0].Put(seen)
	}
	return cached
}

// recheck is a source that is to be assessed again after a delay.
type recheck struct {
	source events.Source
	delay  time.Duration
}

// viewTest is a view of a cache. It records what is queued and logged.
type viewTest struct {
	View
	rechecks []recheck
	log      bytes.Buffer
}

func (v *viewTest) AddAfter(source events.Source, delay time.Duration) {
	v.rechecks = append(v.rechecks, recheck{source, delay})
}

func viewOf(t testing.TB, now time.Time, objects ...*Object) *viewTest {
	t.Helper()
	v := &viewTest{}
	v.View = View{
		Cached: cacheOf(objects...), Ring: keyringOf(1), Now: func() time.Time { return now }, Queue: v, Log: slog.New(slog.NewTextHandler(&v.log, nil)),
	}
	return v
}

var (
	storeEpoch = time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	storePath  = events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}
)

// minute returns the time n minutes after the epoch of these tests.
func minute(n int) time.Time { return storeEpoch.Add(time.Duration(n) * time.Minute) }

// written is the observation of a write that the audit log has a line about. It was read when it was written.
func written(version int64, operation string, at int) openbao.Observation {
	seen := audited(polled(version, openbao.Live, at, at), operation)
	seen.At = minute(at)
	return seen
}

// audited is an observation that the audit log has a line about.
func audited(seen openbao.Observation, operation string) openbao.Observation {
	seen.Operation = operation
	return seen
}

// polled is the observation of metadata that was read.
func polled(version int64, state openbao.State, at, read int) openbao.Observation {
	seen := openbao.Observation{
		Path: storePath, Engine: events.EngineKV, Version: version, State: state, ReadAt: minute(read), Received: minute(read).Add(time.Second),
	}
	if at >= 0 {
		seen.At = minute(at)
	}
	return seen
}

// role is the observation of a static role that was read, and was last rotated at a minute.
func role(at, read int) openbao.Observation {
	seen := polled(0, openbao.Live, at, read)
	seen.Engine = events.EngineDatabase
	return seen
}

// received is an observation that was received at another time than the store's clock shows.
func received(seen openbao.Observation, at int) openbao.Observation {
	seen.Received = minute(at)
	return seen
}

// polledAgain is an observation by a poll after another one.
func polledAgain(seen openbao.Observation, before int) openbao.Observation {
	seen.PolledBefore = minute(before)
	return seen
}

// requested is the observation of a request in KV v1.
func requested(state openbao.State, operation, request string, at int) openbao.Observation {
	return openbao.Observation{
		Path: storePath, Engine: events.EngineKV, State: state, At: minute(at), Request: request, Operation: operation, Received: minute(at),
	}
}

// revisionOf is the revision of a version that was created at a minute.
func revisionOf(n int64, at int) string { return strconv.FormatInt(n, 10) + "/" + nanos(at) }

func nanos(n int) string { return strconv.FormatInt(minute(n).UnixNano(), 10) }
