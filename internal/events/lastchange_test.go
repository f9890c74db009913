package events

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/tests/testkit"
)

// everyField compares structs by all of their fields.
var everyField = cmp.Options{cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()}

// kept is what is kept of a change that is stored at testTime.
func kept(t testing.TB, seq uint64, c Change) *LastChange {
	t.Helper()
	last, err := NewLastChange(seq, testTime, c)
	testkit.Must(t, err)
	return &last
}

func TestALastChangeHasWhatTheChangeSays(t *testing.T) {
	same, created, rare, counted := change(), change(), change(), countedChange()
	same.Verb, same.Previous, same.Changed = VerbObserved, same.Fingerprint, nil
	created.Created, created.Previous, created.CreatedAt = true, "", created.ResourceVersion
	created.Keys, created.Changed = map[string]Key{"a": {Fingerprint: sum("3")}, "b": {Fingerprint: sum("4")}}, []string{"a", "b"}
	rare.Hold, rare.Ignore, rare.Match, rare.Since = "until Monday", true, true, testTime.Truncate(time.Second)
	rare.Writers = []string{"external-secrets", "postgres-operator"}
	rare.Cause = &Cause{Source: "externalsecret/db", Event: "bao/root/secret/shop/db/7"}
	rare.Keys["password"] = Key{Fingerprint: sum("3"), ChangedAt: "4711", Added: true}
	counted.Keys["password"] = rare.Keys["password"]
	for _, want := range append(allChanges(), same, created, rare, counted, leavingOut()) {
		t.Run(string(want.Source.Kind)+" "+string(want.Verb), func(t *testing.T) {
			last := kept(t, 7, want)
			if last.Seq != 7 || !last.StoredAt().Equal(testTime) {
				t.Errorf("sequence %d, stored at %s; want 7 and %s", last.Seq, last.StoredAt(), testTime)
			}
			got := last.Change(want.Cluster, want.Source)
			if got.ID() != want.ID() {
				t.Errorf("the id is %s, want %s", got.ID(), want.ID())
			}
			if (got.Previous == "") != (want.Previous == "") || (got.Previous == got.Fingerprint) != (want.Previous == want.Fingerprint) {
				t.Errorf("the fingerprint before was %q, want it as like and unlike as %q", got.Previous, want.Previous)
			}
			got.Previous, want.Previous = "", ""
			if want.Verb == VerbDeleted {
				want.Changed = nil // No watcher says that of a deletion.
			}
			testkit.WantEqual(t, "change", want, got, cmpopts.EquateEmpty())
		})
	}
}

// There may be one for each Secret. The sizes are size classes of the allocator.
func TestALastChangeIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(LastChange{}); size > 192 {
		t.Errorf("a last change has %d bytes", size)
	}
	if size := unsafe.Sizeof(LastKey{}); size > 48 {
		t.Errorf("a key of it has %d bytes", size)
	}
}

// Anyone with the permission to publish may have written what is on the stream.
func FuzzNewLastChange(f *testing.F) {
	for _, c := range append(allChanges(), countedChange(), leavingOut()) {
		data, err := json.Marshal(c)
		testkit.Must(f, err)
		f.Add(string(c.Source.Kind), string(c.Verb), c.ResourceVersion, c.Fingerprint, c.Trace.Parent, data)
	}
	f.Fuzz(func(t *testing.T, kind, verb, version, fingerprint, parent string, data []byte) {
		c := changeOf(Kind(kind), VerbObserved)
		if json.Unmarshal(data, &c) != nil {
			return
		}
		c.Verb, c.ResourceVersion, c.Fingerprint, c.Trace = Verb(verb), version, fingerprint, TraceContext{Parent: parent}.Valid()
		if c.validate() != nil {
			return
		}
		last, err := NewLastChange(1, testTime, c)
		if err != nil {
			return // A fingerprint is under another key.
		}
		again, err := NewLastChange(1, testTime, last.Change(c.Cluster, c.Source))
		if err != nil {
			t.Fatalf("what was kept of %+v is not a change: %v", c, err)
		}
		if diff := cmp.Diff(last, again, everyField); diff != "" {
			t.Errorf("kept once and twice (-once +twice):\n%s", diff)
		}
	})
}
