package sources

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/internal/sources/openbao"
	"github.com/keyturn/keyturn/tests/testkit"
)

// testSource is the source of tests that need only one, and otherSource is beside it.
var (
	testSource  = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	otherSource = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "other"}
)

var epoch = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// canary is a value that must not be found in what is published or logged.
const canary = "CANARY-5f0c2a4e"

// fingerprintOf is a fingerprint of one digit.
func fingerprintOf(digit string) string { return "k0a:" + strings.Repeat(digit, 2*len(events.Sum{})) }

var fingerprint = fingerprintOf("1")

// keyFileOf writes a key file with one key.
func keyFileOf(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "keys")
	testkit.Must(tb, os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))), 0o600))
	return file
}

func ringOf(tb testing.TB) *kinds.Keyring {
	tb.Helper()
	ring, err := kinds.LoadKeyring(keyFileOf(tb))
	testkit.Must(tb, err)
	return ring
}

// kindOf returns a kind of sources.
func kindOf(tb testing.TB, kind events.Kind) kinds.Kind {
	tb.Helper()
	selected, err := kinds.Select([]string{string(kind)})
	testkit.Must(tb, err)
	return selected[0]
}

// resourceOf returns the resource of a kind of sources.
func resourceOf(tb testing.TB, kind events.Kind) schema.GroupVersionResource {
	tb.Helper()
	return kindOf(tb, kind).Listing().Resource
}

// objectOf is the Secret testSource at a resourceVersion, reduced.
func objectOf(tb testing.TB, uid string, version int, value string) *kinds.Object {
	tb.Helper()
	return reducedOf(tb, secretOf(testSource.Namespace, testSource.Name, uid, strconv.Itoa(version), value))
}

func reducedOf(tb testing.TB, secret *corev1.Secret) *kinds.Object {
	tb.Helper()
	reduced, ok := kindOf(tb, events.KindSecret).Reduce(ringOf(tb), secret)
	if !ok {
		tb.Fatal("a Secret is none")
	}
	return reduced
}

// cacheOf is a cache that holds objects.
func cacheOf(objects ...*kinds.Object) kinds.Cache {
	cached := make(kinds.Cache)
	for _, seen := range objects {
		kind := seen.Source.Kind
		if cached[kind] == nil {
			cached[kind] = []*kinds.Store{kinds.NewStore(kind)}
		}
		cached[kind][0].Put(seen)
	}
	return cached
}

// mustLast returns the last event once the change is published.
func mustLast(tb testing.TB, change events.Change) *kinds.LastEvent {
	tb.Helper()
	entry, err := kinds.NewLastEvent(1, change)
	testkit.Must(tb, err)
	return entry
}

// eventOf is the last event of a source in a few words.
func eventOf(seq uint64, verb events.Verb, uid, version, changedAt string) *kinds.LastEvent {
	entry, err := kinds.NewLastEvent(seq, events.Change{
		Verb: verb, UID: uid, ResourceVersion: version, ChangedAt: changedAt, Fingerprint: fingerprint, Time: epoch,
	})
	if err != nil {
		panic(err) // The fingerprint is one.
	}
	return entry
}

// eventAt is that of a change, and deletedAt the deletion of its source at this version.
func eventAt(seq uint64, uid, version, changedAt string) *kinds.LastEvent {
	return eventOf(seq, events.VerbChanged, uid, version, changedAt)
}

func deletedAt(seq uint64, uid, version string) *kinds.LastEvent {
	return eventOf(seq, events.VerbDeleted, uid, version, version)
}

// lastOf is one of which only the verb matters.
func lastOf(seq uint64, verb events.Verb) *kinds.LastEvent { return eventOf(seq, verb, "u", "1", "") }

func lostAt(seq uint64, entry *kinds.LastEvent) *kinds.LastEvent {
	entry.Seq, entry.Lost = seq, true
	return entry
}

// everyField compares structs by all of their fields.
var everyField = cmp.Exporter(func(reflect.Type) bool { return true })

// customOf is a custom resource with the content, in JSON.
func customOf(tb testing.TB, content string) *unstructured.Unstructured {
	tb.Helper()
	resource := &unstructured.Unstructured{}
	testkit.Must(tb, json.Unmarshal([]byte(content), &resource.Object))
	return resource
}

func secretOf(namespace, name, uid, version, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: version},
		Data:       map[string][]byte{"a": []byte(canary + value), "b": []byte(canary)},
	}
}

// told formats an event as one line: the verb, uid/resourceVersion and changedAt, then of a status its fields, and of content the keys with their own
// changedAt, and the keys that have changed, and what else is set.
func told(change events.Change) string {
	var b strings.Builder
	at := func(version string) string {
		if version == "" {
			return ""
		}
		return "@" + version
	}
	fmt.Fprintf(&b, "%s %s/%s%s", change.Verb, change.UID, change.ResourceVersion, at(change.ChangedAt))
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(change.Keys)) {
		keys = append(keys, name+at(change.Keys[name].ChangedAt))
	}
	if status := change.Status; status != nil {
		fmt.Fprintf(&b, " %s of %s: %s", status.Revision, status.Secret, status.Reason)
	} else {
		fmt.Fprintf(&b, " {%s} %v", strings.Join(keys, " "), change.Changed)
	}
	if change.Created {
		b.WriteString(" created")
	}
	if change.Previous != "" {
		b.WriteString(" previous")
	}
	return b.String()
}

// storePath is a secret in a store, and minute a time.
var storePath = events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}

func minute(n int) time.Time { return epoch.Truncate(time.Hour).Add(time.Duration(n) * time.Minute) }

// written is the observation of a write that the audit log has a line about. It was read when it was written.
func written(version int64, operation string, at int) openbao.Observation {
	return openbao.Observation{
		Path: storePath, Engine: events.EngineKV, Version: version, State: openbao.Live, Operation: operation, At: minute(at), ReadAt: minute(at),
		Received: minute(at).Add(time.Second),
	}
}
