package kinds

import (
	"crypto/sha256"
	"hash"
	"maps"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// maxGone is the maximum number of removed keys in an event. Without it, an object whose keys are dates would list one more with each change.
const maxGone = 64

// divide returns the keys of an object that an event lists, and the rest, which it counts in buckets. A key that the previous event lists stays
// listed, so that a new key displaces none. A removed key keeps its place while the removal is remembered, so that it has the same fingerprint when
// it is back. Further keys are listed by name while there is room, so that two watchers with the same last event, or none, list the same keys.
func divide(before map[string]events.Key, now fingerprints) (listed, rest []keyFingerprint) {
	places, size := 0, 0
	hasRoom := func(name string) bool {
		if places == events.MaxKeys || size+len(name) > events.MaxKeyNames {
			return false
		}
		places, size = places+1, size+len(name)
		return true
	}
	var others []keyFingerprint
	for _, k := range now.keys {
		if _, known := before[k.name]; known && hasRoom(k.name) {
			listed = append(listed, k)
		} else {
			others = append(others, k)
		}
	}
	if !listable(now.keys) {
		gone := slices.DeleteFunc(slices.Sorted(maps.Keys(before)), now.has)
		for _, name := range gone[:min(len(gone), maxGone)] {
			hasRoom(name)
		}
	}
	for _, k := range others {
		if hasRoom(k.name) {
			listed = append(listed, k)
		} else {
			rest = append(rest, k)
		}
	}
	return listed, rest
}

// listable reports whether an event can list every key.
func listable(keys []keyFingerprint) bool {
	size := 0
	for _, k := range keys {
		size += len(k.name)
	}
	return len(keys) <= events.MaxKeys && size <= events.MaxKeyNames
}

// sizeOfNames returns the total length of the names of keys, in bytes. An event with more than events.MaxKeyNames could not be published, so further
// removed keys are recorded in their buckets.
func sizeOfNames(keys map[string]events.Key) int {
	size := 0
	for name := range keys {
		size += len(name)
	}
	return size
}

// bucketsOf returns the fingerprints of the buckets of keys that are sorted by name. The digests need no key, because their input is keyed.
func bucketsOf(keyID string, keys []keyFingerprint) map[string]string {
	digests := make(map[string]hash.Hash)
	for _, k := range keys {
		name := events.Bucket(k.name)
		if digests[name] == nil {
			digests[name] = sha256.New()
		}
		digests[name].Write(k.sum[:])
	}
	texts := make(map[string]string, len(digests))
	for name, digest := range digests {
		texts[name] = truncated(digest).Text(keyID)
	}
	return texts
}

// countRest returns the buckets of an event for the unlisted rest of the keys. A bucket has changed when one of its keys last changed, including keys
// that are removed or listed now. Date returns a time of the previous event if it counts.
func countRest(before events.Change, keyID string, rest []keyFingerprint, date func(version string) string) map[string]events.Key {
	var counted map[string]events.Key
	set := func(name, fingerprint, changedAt string) {
		if counted == nil {
			counted = make(map[string]events.Key)
		}
		counted[name] = events.Key{Fingerprint: fingerprint, ChangedAt: changedAt}
	}
	for name, bucket := range before.Buckets {
		if changedAt := date(bucket.ChangedAt); changedAt != "" {
			set(name, "", changedAt)
		}
	}
	for name, fingerprint := range bucketsOf(keyID, rest) {
		set(name, fingerprint, counted[name].ChangedAt)
	}
	for _, k := range rest {
		earlier, _ := before.Key(k.name)
		name := events.Bucket(k.name)
		if changedAt := date(earlier.ChangedAt); events.CompareVersions(changedAt, counted[name].ChangedAt) > 0 {
			set(name, counted[name].Fingerprint, changedAt)
		}
	}
	return counted
}

// differences are the possible differences between the last event of a source and its object.
type differences struct {
	// names are the keys that were added, changed or removed, sorted. An unlisted key may have changed if its bucket differs.
	names []string
	// buckets are the buckets of the last event with keys, one of which may be removed.
	buckets []string
}

// differencesOf compares the keys of an object with the last event: listed keys one by one, and the others by their buckets.
func differencesOf(before events.Change, now fingerprints) differences {
	var found differences
	var unlisted []keyFingerprint
	for _, k := range now.keys {
		switch earlier, isListed := before.Keys[k.name]; {
		case !isListed:
			unlisted = append(unlisted, k)
		case earlier.Fingerprint != k.sum.Text(now.keyID):
			found.names = append(found.names, k.name)
		}
	}
	counted := bucketsOf(now.keyID, unlisted)
	for _, k := range unlisted {
		if name := events.Bucket(k.name); counted[name] != before.Buckets[name].Fingerprint {
			found.names = append(found.names, k.name)
		}
	}
	for name, bucket := range before.Buckets {
		if bucket.Fingerprint != "" && bucket.Fingerprint != counted[name] {
			found.buckets = append(found.buckets, name)
		}
	}
	for name, earlier := range before.Keys {
		if earlier.Fingerprint != "" && !now.has(name) {
			found.names = append(found.names, name)
		}
	}
	slices.Sort(found.names)
	return found
}
