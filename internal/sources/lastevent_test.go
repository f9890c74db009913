package sources

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/keyturn/keyturn/internal/events"
)

// printed is a fingerprint under the key with the id, of one digit.
func printed(keyID, digit string) string { return "k" + keyID + ":" + strings.Repeat(digit, 2*sumSize) }

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
		"uid": entry.UID, "version": entry.ResourceVersion, "key id": entry.KeyID(), "namespace": source.Namespace, "name": source.Name,
	} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(text))); at >= begin && at < begin+uintptr(len(header)) {
			t.Errorf("the %s %q keeps the header in memory", what, text)
		}
	}
}
