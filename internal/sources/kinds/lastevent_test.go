package kinds

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

// Anyone with the permission to publish may have written what is on the stream. Whatever it is, comparing an object with it must return an event
// that can be published and read again.
func FuzzNewLast(f *testing.F) {
	f.Add("changed", "7", printed("0a", "1"), "7", false, "a", printed("0a", "2"), "7", "", "")
	f.Add("deleted", "7", printed("0a", "1"), "", false, "a", "", "7", "", "")
	f.Add("changed", "7", printed("0a", "1"), "7", true, "a", printed("0a", "2"), "7", "", "")
	f.Add("changed", "7", printed("0a", "1"), "7", true, "b", printed("0a", "2"), "7", events.Bucket("a"), printed("0a", "3"))
	f.Add("observed", "x", printed("0a", "1"), "-", false, "", printed("0b", "2"), "?", "", "")
	f.Fuzz(func(t *testing.T, verb, version, all, changedAt string, truncated bool, name, print, keyChangedAt, bucket, bucketPrint string) {
		var buckets map[string]events.Key
		if bucket != "" {
			buckets = map[string]events.Key{bucket: {Fingerprint: bucketPrint, ChangedAt: keyChangedAt}}
		}
		entry, err := NewLastEvent(1, events.Change{
			Verb: events.Verb(verb), UID: "u", ResourceVersion: version, Fingerprint: all, ChangedAt: changedAt, Truncated: truncated,
			Keys: map[string]events.Key{name: {Fingerprint: print, ChangedAt: keyChangedAt}}, Buckets: buckets,
		})
		if err != nil {
			return
		}
		ring := keyringOf(1)
		for _, now := range []*Object{nil, objectOf(ring, "u", 7, content{"a": "1"}), objectOf(ring, "v", 8, nil)} {
			change, worthSaying := compare(entry, now, false)
			if !worthSaying {
				continue
			}
			if _, err := NewLastEvent(2, change); err != nil {
				t.Errorf("after %+v comes %+v, which cannot be read: %v", entry, change, err)
			}
		}
	})
}
