package sources

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/internal/events"
)

// printed is a fingerprint under the key with the id, of one digit.
func printed(keyID, digit string) string { return "k" + keyID + ":" + strings.Repeat(digit, 2*sumSize) }

func TestNewLast(t *testing.T) {
	var ones, twos sum
	for i := range ones {
		ones[i], twos[i] = 0x11, 0x22
	}
	for _, tt := range []struct {
		name   string
		change events.Change
		want   *lastEvent
	}{
		{
			name: "what an event says is kept",
			change: events.Change{
				Verb: events.VerbChanged, UID: "u", ResourceVersion: "7", Fingerprint: printed("0a", "1"), ChangedAt: "7",
				Keys: map[string]events.Key{"a": {Fingerprint: printed("0a", "2"), ChangedAt: "5"}, "b": {ChangedAt: "7"}},
			},
			want: &lastEvent{
				seq: 3, verb: events.VerbChanged, uid: "u", version: "7", keyID: "0a", all: ones, changedAt: "7",
				keys: []lastKey{{name: "a", sum: twos, changedAt: "5"}, {name: "b", gone: true, changedAt: "7"}},
			},
		},
		{
			name:   "an event without keys is one of an empty object",
			change: events.Change{Verb: events.VerbObserved, UID: "u", ResourceVersion: "7", Fingerprint: printed("0a", "1")},
			want:   &lastEvent{seq: 3, verb: events.VerbObserved, uid: "u", version: "7", keyID: "0a", all: ones},
		},
		{
			name: "the keys of an event that says it lists none are not read",
			change: events.Change{
				Verb: events.VerbChanged, UID: "u", ResourceVersion: "7", Fingerprint: printed("0a", "1"), ChangedAt: "7",
				Truncated: true, Keys: map[string]events.Key{"a": {Fingerprint: printed("0a", "2")}},
			},
			want: &lastEvent{
				seq: 3, verb: events.VerbChanged, uid: "u", version: "7", keyID: "0a", all: ones, changedAt: "7", truncated: true,
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newLastEvent(3, tt.change)
			if err != nil {
				t.Fatal(err)
			}
			diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(lastEvent{}, lastKey{}), cmpopts.EquateEmpty(),
				cmpopts.SortSlices(func(a, b lastKey) bool { return a.name < b.name }))
			if diff != "" {
				t.Errorf("last (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewLastRefuses(t *testing.T) {
	for _, tt := range []struct {
		name      string
		all, key  string
		wantError string
	}{
		{
			"a fingerprint that is none", "md5:abc", printed("0a", "1"),
			`fingerprint "md5:abc" is not k<key id>:<32 hex digits>`,
		},
		{
			"a key's fingerprint that is none", printed("0a", "1"), "k0a:11",
			`fingerprint "k0a:11" is not k<key id>:<32 hex digits>`,
		},
		{
			"a key's fingerprint under another key than the whole", printed("0a", "1"), printed("0b", "1"),
			`fingerprint "` + printed("0b", "1") + `" is not under the key of "` + printed("0a", "1") + `"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newLastEvent(1, events.Change{Fingerprint: tt.all, Keys: map[string]events.Key{"a": {Fingerprint: tt.key}}})
			if err == nil || err.Error() != tt.wantError {
				t.Errorf("error %v, want %q", err, tt.wantError)
			}
		})
	}
}

func FuzzParseSum(f *testing.F) {
	for _, text := range []string{
		printed("0a1b2c3d", "f"), printed("", "0"), printed("0A", "A"), strings.TrimPrefix(printed("0a", "1"), "k"),
		"k0a:", "k:", "k", "", "kk:" + strings.Repeat("1", 32), printed("0a", "1") + "1", printed("0a:0b", "1"),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keyID, s, err := parseSum(text)
		if err == nil && s.text(keyID) != text {
			t.Errorf("%q was read as %q", text, s.text(keyID))
		}
	})
}

// Anyone with the permission to publish may have written what is on the stream. Whatever it is, comparing an object with it must return an event
// that can be published and read again.
func FuzzNewLast(f *testing.F) {
	f.Add("changed", "7", printed("0a", "1"), "7", false, "a", printed("0a", "2"), "7")
	f.Add("deleted", "7", printed("0a", "1"), "", false, "a", "", "7")
	f.Add("changed", "7", printed("0a", "1"), "7", true, "a", printed("0a", "2"), "7")
	f.Add("observed", "x", printed("0a", "1"), "-", false, "", printed("0b", "2"), "?")
	f.Fuzz(func(t *testing.T, verb, version, all, changedAt string, truncated bool, name, print, keyChangedAt string) {
		entry, err := newLastEvent(1, events.Change{
			Verb: events.Verb(verb), UID: "u", ResourceVersion: version, Fingerprint: all, ChangedAt: changedAt, Truncated: truncated,
			Keys: map[string]events.Key{name: {Fingerprint: print, ChangedAt: keyChangedAt}},
		})
		if err != nil {
			return
		}
		if change, ok := entry.lostBehind(0).again(); ok {
			if _, err := newLastEvent(2, change); err != nil {
				t.Errorf("%+v is published again as %+v, which cannot be read: %v", entry, change, err)
			}
		}
		ring := keyringOf(1)
		for _, now := range []*object{nil, objectOf(ring, "u", 7, content{"a": "1"}), objectOf(ring, "v", 8, nil)} {
			change, worthSaying := compare(entry, now, false)
			if !worthSaying {
				continue
			}
			if _, err := newLastEvent(2, change); err != nil {
				t.Errorf("after %+v comes %+v, which cannot be read: %v", entry, change, err)
			}
		}
	})
}

func TestWhatIsKeptIsNoPartOfTheHeader(t *testing.T) {
	fingerprint := printed("0a", "1")
	header := "uid-1 17 shop db " + fingerprint
	cut := func(text string) string {
		at := strings.Index(header, text)
		return header[at : at+len(text)]
	}
	change := events.Change{
		Verb: events.VerbObserved, UID: cut("uid-1"), ResourceVersion: cut("17"), Fingerprint: cut(fingerprint),
		Source: events.Source{Kind: events.KindSecret, Namespace: cut("shop"), Name: cut("db")},
	}
	l := newLedger(nil)
	entry := mustLast(t, change)
	l.set(change.Source, entry)
	source := l.sources()[0]
	begin := uintptr(unsafe.Pointer(unsafe.StringData(header)))
	for what, text := range map[string]string{
		"uid": entry.uid, "version": entry.version, "key id": entry.keyID, "namespace": source.Namespace, "name": source.Name,
	} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(text))); at >= begin && at < begin+uintptr(len(header)) {
			t.Errorf("the %s %q keeps the header in memory", what, text)
		}
	}
}

func TestLedger(t *testing.T) {
	l := newLedger(nil)
	there, gone := testSource, testSource
	gone.Name = "gone"
	if l.get(there) != nil || len(l.sources()) != 0 {
		t.Error("a new ledger knows something")
	}
	entry := &lastEvent{seq: 1, verb: events.VerbObserved}
	l.set(there, entry)
	l.set(gone, &lastEvent{seq: 2, verb: events.VerbDeleted})
	if l.get(there) != entry {
		t.Errorf("got %+v, want the entry that was set", l.get(there))
	}
	if diff := cmp.Diff([]events.Source{there}, l.sources()); diff != "" {
		t.Errorf("the sources that exist (-want +got):\n%s", diff)
	}
	l.set(there, nil)
	if l.get(there) != nil || len(l.sources()) != 0 {
		t.Error("a source is known after it was forgotten")
	}
}
