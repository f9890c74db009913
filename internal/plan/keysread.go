package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// view is the part of a source that the pods of a workload read.
type view struct {
	// fingerprint covers everything that the pods read and that counts.
	fingerprint string
	// scope says what the fingerprint covers, see workload.RolledFor.
	scope string
	// changedAt is the resourceVersion of its last change, or empty if nothing has changed since the source was first seen.
	changedAt string
	// changed are the keys in the view that the event itself changed.
	changed []string
	// uncounted are the sorted keys that the pods read but that do not count.
	uncounted []string
	// isRebased says that a key counts again that has changed while it did not. So the fingerprint may differ from a recorded one without a change
	// that counts.
	isRebased bool
}

// viewOf returns the view of a source that the workload wants. The whole source counts if the event lists no single keys, or not all keys that the
// pods read. An unlisted key counts as its bucket.
func viewOf(change events.Change, want workload.Want) view {
	if change.Truncated && (want.Keys == nil || len(change.Buckets) == 0) {
		return wholeOf(change)
	}
	names := want.Keys
	switch {
	case names == nil && !leavesOut(change, want):
		return wholeOf(change)
	case names == nil:
		names = slices.Sorted(maps.Keys(change.Keys))
	case len(want.Except) > 0:
		names = slices.Concat(want.Keys, want.Except)
		slices.Sort(names)
	}
	seen := view{}
	counted := make([]string, 0, len(names))
	for _, name := range names {
		key, _ := change.Key(name)
		isThere, counts := want.Keys != nil || key.Fingerprint != "", doesCount(name, key, want)
		switch {
		case isThere && counts:
			counted = append(counted, name)
		case isThere:
			seen.uncounted = append(seen.uncounted, name)
		}
		switch {
		case !counts || key.ChangedAt == "":
		case !doesChangeCount(name, key, want):
			seen.isRebased = true
		default:
			seen.date(key.ChangedAt)
			if key.ChangedAt == change.ResourceVersion {
				seen.changed = append(seen.changed, name)
			}
		}
	}
	if want.Keys != nil {
		seen.fingerprint, seen.scope = fingerprintOf(change, counted), workload.ScopeOf(covered(change, counted))
		return seen
	}
	for _, bucket := range change.Buckets { // The keys that were not listed were deleted.
		seen.date(bucket.ChangedAt)
	}
	seen.fingerprint, seen.scope = change.Fingerprint, workload.ScopeOf(nil)
	if len(seen.uncounted) > 0 {
		seen.fingerprint, seen.scope = fingerprintOf(change, counted), workload.ScopeWithout(seen.uncounted)
	}
	return seen
}

// date records a change at a resourceVersion, which may be empty, if it is the newest.
func (v *view) date(changedAt string) {
	if changedAt != "" && (v.changedAt == "" || events.Newer(changedAt, v.changedAt)) {
		v.changedAt = changedAt
	}
}

// doesCount reports whether changes of a key count for a workload.
func doesCount(name string, key events.Key, want workload.Want) bool {
	return !slices.Contains(want.Except, name) && (key.Ignored == "" || slices.Contains(want.Named, name))
}

// doesChangeCount reports whether the last change of a counting key counts, too. It does not if the key did not count at that time.
func doesChangeCount(name string, key events.Key, want workload.Want) bool {
	return key.Since == "" || slices.Contains(want.Named, name) || events.Newer(key.ChangedAt, key.Since)
}

func wholeOf(change events.Change) view {
	return view{fingerprint: change.Fingerprint, scope: workload.ScopeOf(nil), changedAt: change.ChangedAt, changed: change.Changed}
}

// leavesOut reports whether some keys, or some changes of keys, do not count for a workload that reads the whole source.
func leavesOut(change events.Change, want workload.Want) bool {
	if len(want.Except) > 0 {
		return true
	}
	for _, key := range change.Keys {
		if key.Ignored != "" || key.Since != "" {
			return true
		}
	}
	return false
}

// fingerprintOf returns a fingerprint of some keys of a source. The digest needs no key, because its input is keyed.
func fingerprintOf(change events.Change, names []string) string {
	digest := sha256.New()
	for _, name := range names {
		key, _ := change.Key(name)
		for _, part := range []string{name, key.Fingerprint} {
			var length [8]byte
			binary.BigEndian.PutUint64(length[:], uint64(len(part)))
			digest.Write(length[:])
			digest.Write([]byte(part))
		}
	}
	keyID, _, _ := strings.Cut(change.Fingerprint, ":")
	return keyID + ":" + hex.EncodeToString(digest.Sum(nil)[:16])
}

// covered returns the names for the scope of their fingerprint. The fingerprint of a bucket covers its unlisted keys, so the listed ones are
// appended. After a loss of the stream, other keys may be listed, and the scopes differ: the content cannot be compared. No name contains '#'.
func covered(change events.Change, names []string) []string {
	var listed map[string][]string
	texts := slices.Clone(names)
	for i, name := range names {
		key, isListed := change.Key(name)
		if isListed || key.Fingerprint == "" {
			continue
		}
		if listed == nil {
			listed = listedByBucket(change)
		}
		texts[i] = name + "#" + strings.Join(listed[events.Bucket(name)], "#")
	}
	return texts
}

// listedByBucket returns the sorted names of listed keys, by bucket.
func listedByBucket(change events.Change) map[string][]string {
	names := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(change.Keys)) {
		if change.Keys[name].Fingerprint != "" {
			bucket := events.Bucket(name)
			names[bucket] = append(names[bucket], name)
		}
	}
	return names
}

// ignoredOf returns the keys that count only for workloads that name them.
func ignoredOf(change events.Change) []string {
	var names []string
	for name, key := range change.Keys {
		if key.Ignored != "" {
			names = append(names, name)
		}
	}
	return names
}
