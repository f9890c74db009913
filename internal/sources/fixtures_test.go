package sources

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// testSource is the source of tests that need only one.
var testSource = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}

// keyringOf makes a ring of test keys, each a number repeated, the current one first.
func keyringOf(numbers ...byte) *keyring {
	ring := &keyring{}
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
func objectOf(ring *keyring, uid string, version int, data content) *object {
	return newObject(ring, testSource.Kind, &metav1.ObjectMeta{
		Namespace: testSource.Namespace, Name: testSource.Name,
		UID: types.UID(uid), ResourceVersion: strconv.Itoa(version),
	}, data.data())
}

// mustLast returns the last event once the change is published.
func mustLast(t testing.TB, change events.Change) *lastEvent {
	t.Helper()
	entry, err := newLastEvent(1, change)
	must(t, err)
	return entry
}

// eventOf is the last event of a source in a few words.
func eventOf(seq uint64, verb events.Verb, uid, version, changedAt string) *lastEvent {
	entry, err := newLastEvent(seq, events.Change{
		Verb: verb, UID: uid, ResourceVersion: version, ChangedAt: changedAt, Fingerprint: printed("0a", "1"), Time: epoch,
	})
	if err != nil {
		panic(err) // The fingerprint is one.
	}
	return entry
}

// eventAt is that of a change.
func eventAt(seq uint64, uid, version, changedAt string) *lastEvent {
	return eventOf(seq, events.VerbChanged, uid, version, changedAt)
}

// lastOf is one of which only the verb matters.
func lastOf(seq uint64, verb events.Verb) *lastEvent { return eventOf(seq, verb, "u", "1", "") }

// everyField compares structs by all of their fields.
var everyField = cmp.Exporter(func(reflect.Type) bool { return true })

// customOf is a custom resource with the content, in JSON.
func customOf(t testing.TB, content string) *unstructured.Unstructured {
	t.Helper()
	resource := &unstructured.Unstructured{}
	must(t, json.Unmarshal([]byte(content), &resource.Object))
	return resource
}

// pemOf is a certificate in PEM with a serial number and an end.
func pemOf(t testing.TB, serial int64, notAfter time.Time) []byte {
	t.Helper()
	return pemWith(t, big.NewInt(serial), notAfter)
}

// pemWith is pemOf with a serial number of any length.
func pemWith(t testing.TB, serial *big.Int, notAfter time.Time) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: serial, NotBefore: notAfter.AddDate(0, -1, 0), NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// must ends the test at an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// wantEqual reports how two values differ, where what names them.
func wantEqual(tb testing.TB, what string, want, got any, options ...cmp.Option) {
	tb.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
