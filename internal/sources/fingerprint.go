package sources

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// sumSize is the number of bytes that are kept of an HMAC: 128 bits.
const sumSize = 16

type sum [sumSize]byte

// fingerprints are those of one object, made with one key of the ring.
type fingerprints struct {
	keyID string
	all   sum
	// keys is sorted by name. It is empty if truncated: an event cannot list so many keys, and whoever may write an object must not choose how much
	// memory it takes.
	keys      []keyFingerprint
	truncated bool
}

type keyFingerprint struct {
	name string
	sum  sum
}

// newFingerprints makes the fingerprints of a source's data. The names are the keys of the data, sorted.
//
// The hashed text begins with the identity of the object, so that nobody can see that two objects have the same value. The
// length precedes each part, so that two contents cannot collide when their parts are joined.
func newFingerprints(keyID string, secret []byte, source events.Source, names []string, data map[string][]byte) fingerprints {
	f := fingerprints{keyID: keyID, keys: make([]keyFingerprint, 0, len(names))}
	mac := hmac.New(sha256.New, secret)
	for _, name := range names {
		mac.Reset()
		writeIdentity(mac, "key", source)
		writePart(mac, []byte(name))
		writePart(mac, data[name])
		f.keys = append(f.keys, keyFingerprint{name: name, sum: truncated(mac)})
	}
	mac.Reset()
	writeIdentity(mac, "all", source)
	for _, k := range f.keys {
		writePart(mac, []byte(k.name))
		mac.Write(k.sum[:])
	}
	f.all = truncated(mac)
	if !listable(f.keys) {
		f.keys, f.truncated = nil, true
	}
	return f
}

func writeIdentity(mac hash.Hash, domain string, source events.Source) {
	for _, part := range []string{"keyturn/v1", domain, string(source.Kind), source.Namespace, source.Name} {
		writePart(mac, []byte(part))
	}
}

func writePart(mac hash.Hash, part []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	mac.Write(length[:])
	mac.Write(part)
}

func truncated(mac hash.Hash) sum {
	var full [sha256.Size]byte
	return sum(mac.Sum(full[:0])[:sumSize])
}

// text returns the form used in events and annotations: k<key id>:<hex>.
func (s sum) text(keyID string) string { return "k" + keyID + ":" + hex.EncodeToString(s[:]) }

// parseSum is the inverse of text.
func parseSum(text string) (keyID string, s sum, err error) {
	id, digits, _ := strings.Cut(strings.TrimPrefix(text, "k"), ":")
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != sumSize || sum(raw).text(id) != text {
		return "", sum{}, fmt.Errorf("fingerprint %q is not k<key id>:<%d hex digits>", text, 2*sumSize)
	}
	return id, sum(raw), nil
}

// under returns the fingerprints that were made with the key of the id.
func under(list []fingerprints, keyID string) (fingerprints, bool) {
	for _, f := range list {
		if f.keyID == keyID {
			return f, true
		}
	}
	return fingerprints{}, false
}

// changedKeys lists the names whose values differ, sorted: added, changed and removed ones.
func changedKeys(before map[string]string, after fingerprints) []string {
	var names []string
	seen := make(map[string]bool, len(after.keys))
	for _, k := range after.keys {
		seen[k.name] = true
		if before[k.name] != k.sum.text(after.keyID) {
			names = append(names, k.name)
		}
	}
	for name, fingerprint := range before {
		if !seen[name] && fingerprint != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
