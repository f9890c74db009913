package sources

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// sumSize is how much of an HMAC is kept: 128 bits.
const sumSize = 16

type sum [sumSize]byte

// prints are the fingerprints of one object under one key of the ring.
type prints struct {
	keyID string
	all   sum
	// keys is in the order of the names.
	keys []keyPrint
}

type keyPrint struct {
	name string
	sum  sum
}

// fingerprint makes the fingerprints of a source's data under every key of the ring, in the order of the ring.
//
// What is hashed begins with the identity of the object, so that equal values in two places cannot be seen to be equal,
// and every part is preceded by its length, so that no two contents collide by joining.
func (r *Keyring) fingerprint(source events.Source, data map[string][]byte) []prints {
	names := slices.Sorted(maps.Keys(data))
	result := make([]prints, 0, len(r.keys))
	for _, k := range r.keys {
		p := prints{keyID: k.id, keys: make([]keyPrint, 0, len(names))}
		mac := hmac.New(sha256.New, k.secret)
		for _, name := range names {
			mac.Reset()
			writeIdentity(mac, "key", source)
			writePart(mac, []byte(name))
			writePart(mac, data[name])
			p.keys = append(p.keys, keyPrint{name: name, sum: truncated(mac)})
		}
		mac.Reset()
		writeIdentity(mac, "all", source)
		for _, print := range p.keys {
			writePart(mac, []byte(print.name))
			mac.Write(print.sum[:])
		}
		p.all = truncated(mac)
		result = append(result, p)
	}
	return result
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

// text is the form in events and annotations: k<key id>:<hex>.
func (s sum) text(keyID string) string { return "k" + keyID + ":" + hex.EncodeToString(s[:]) }

// changed lists the names whose value is not the same in both, in order: added, changed and removed ones.
func changed(before map[string]string, after prints) []string {
	var names []string
	seen := make(map[string]bool, len(after.keys))
	for _, print := range after.keys {
		seen[print.name] = true
		if before[print.name] != print.sum.text(after.keyID) {
			names = append(names, print.name)
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
