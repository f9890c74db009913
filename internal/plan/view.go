package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// view is what the pods of a workload read of a source.
type view struct {
	// fingerprint is the fingerprint of everything that they read.
	fingerprint string
	// scope says what the fingerprint covers, see workload.RolledFor.
	scope string
	// changedAt is the resourceVersion at which any of it last changed, or empty if nothing has changed since the source was first seen.
	changedAt string
	// changed are the keys they read that the event itself changed.
	changed []string
}

// viewOf returns what pods read of a source that read the given keys: all of it if keys is nil, or if the event does not list keys.
func viewOf(change events.Change, keys []string) view {
	if keys == nil || change.Truncated {
		return view{fingerprint: change.Fingerprint, scope: workload.ScopeOf(nil), changedAt: change.ChangedAt, changed: change.Changed}
	}
	seen := view{scope: workload.ScopeOf(keys)}
	digest := sha256.New()
	for _, name := range keys {
		key := change.Keys[name]
		if key.ChangedAt != "" && (seen.changedAt == "" || events.Newer(key.ChangedAt, seen.changedAt)) {
			seen.changedAt = key.ChangedAt
		}
		if key.ChangedAt == change.ResourceVersion {
			seen.changed = append(seen.changed, name)
		}
		for _, part := range []string{name, key.Fingerprint} {
			var length [8]byte
			binary.BigEndian.PutUint64(length[:], uint64(len(part)))
			digest.Write(length[:])
			digest.Write([]byte(part))
		}
	}
	// The input of the digest is already keyed, so the digest is a fingerprint under the same key.
	keyID, _, _ := strings.Cut(change.Fingerprint, ":")
	seen.fingerprint = keyID + ":" + hex.EncodeToString(digest.Sum(nil)[:16])
	return seen
}
