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

// view is what the pods of a workload read of a source.
type view struct {
	// fingerprint is the fingerprint of everything that they read and that counts.
	fingerprint string
	// scope says what the fingerprint covers, see workload.RolledFor.
	scope string
	// changedAt is the resourceVersion at which any of it last changed, or empty if nothing has changed since the source was first seen.
	changedAt string
	// changed are the keys they read that the event itself changed.
	changed []string
	// uncounted are the keys they read that do not count, sorted.
	uncounted []string
	// isRebased says that a key counts again, and has changed before that. So the fingerprint may differ from a recorded one although nothing has
	// changed.
	isRebased bool
}

// viewOf returns what pods read of a source of which the workload wants something. All of the source counts if the event says nothing of single keys,
// or does not list all of those that the pods read. A single key that is not listed counts as its bucket.
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
	for _, bucket := range change.Buckets { // The keys that were not listed are gone.
		seen.date(bucket.ChangedAt)
	}
	seen.fingerprint, seen.scope = change.Fingerprint, workload.ScopeOf(nil)
	if len(seen.uncounted) > 0 {
		seen.fingerprint, seen.scope = fingerprintOf(change, counted), workload.ScopeWithout(seen.uncounted)
	}
	return seen
}

// date adds when something last changed, which is empty if it has not.
func (v *view) date(changedAt string) {
	if changedAt != "" && (v.changedAt == "" || events.Newer(changedAt, v.changedAt)) {
		v.changedAt = changedAt
	}
}

// doesCount reports whether a key counts for a workload.
func doesCount(name string, key events.Key, want workload.Want) bool {
	return !slices.Contains(want.Except, name) && (key.Ignored == "" || slices.Contains(want.Named, name))
}

// doesChangeCount reports whether the last change of a key that counts for a workload does, too: not if the key did not count then.
func doesChangeCount(name string, key events.Key, want workload.Want) bool {
	return key.Since == "" || slices.Contains(want.Named, name) || events.Newer(key.ChangedAt, key.Since)
}

func wholeOf(change events.Change) view {
	return view{fingerprint: change.Fingerprint, scope: workload.ScopeOf(nil), changedAt: change.ChangedAt, changed: change.Changed}
}

// leavesOut reports whether not all keys of a source count for a workload that reads all, or not all of their changes.
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

// fingerprintOf returns a fingerprint of some keys of a source. The input of the digest is already keyed, so the digest is a fingerprint under the
// same key.
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

// covered returns the names as the scope of their fingerprint has them. The fingerprint of a bucket covers all keys in it but those that are listed.
// These may be others once the stream was lost: then what it was before cannot be compared. No name has a '#'.
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

// listedByBucket returns the names that a change lists, sorted, by their buckets.
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

// ignoredOf returns the keys of a source that count only for workloads that name them.
func ignoredOf(change events.Change) []string {
	var names []string
	for name, key := range change.Keys {
		if key.Ignored != "" {
			names = append(names, name)
		}
	}
	return names
}
