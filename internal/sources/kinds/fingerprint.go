package kinds

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// sum is the part of an HMAC that is kept: its first bytes.
type sum = events.Sum

// fingerprints contains the fingerprints of one object, made with one key of the ring.
type fingerprints struct {
	keyID string
	all   sum
	keys  []keyFingerprint // sorted by name; all keys, because the last event of the source determines the listed ones
}

type keyFingerprint struct {
	name string
	sum  sum
}

// newFingerprints makes the fingerprints of a source's data with a key of the ring. The names are the keys of the data, sorted.
//
// The hashed text begins with the identity of the object, so that nobody can see that two objects have the same value. The
// length precedes each part, so that two contents cannot collide when their parts are joined.
func newFingerprints(with ringKey, source events.Source, names []string, data map[string][]byte) fingerprints {
	f := fingerprints{keyID: with.id, keys: make([]keyFingerprint, 0, len(names))}
	mac, identity := hmac.New(sha256.New, with.secret), identityOf("key", source)
	var text []byte // everything but the values, which are not copied
	for _, name := range names {
		mac.Reset()
		text = appendPart(append(text[:0], identity...), name)
		text = appendLength(text, len(data[name]))
		mac.Write(text)
		mac.Write(data[name])
		f.keys = append(f.keys, keyFingerprint{name: name, sum: truncated(mac)})
	}
	f.all = sumOfAll(mac, source, f.keys)
	return f
}

// sumOfAll returns the fingerprint of all keys, which are sorted by name.
func sumOfAll(mac hash.Hash, source events.Source, keys []keyFingerprint) sum {
	mac.Reset()
	mac.Write(identityOf("all", source))
	var text []byte
	for i := range keys {
		text = appendPart(text[:0], keys[i].name)
		mac.Write(append(text, keys[i].sum[:]...))
	}
	return truncated(mac)
}

// identityOf returns the beginning of the hashed texts of an object.
func identityOf(domain string, source events.Source) []byte {
	var text []byte
	for _, part := range []string{"keyturn/v1", domain, string(source.Kind), source.Namespace, source.Name} {
		text = appendPart(text, part)
	}
	return text
}

func appendPart(text []byte, part string) []byte {
	return append(appendLength(text, len(part)), part...)
}

func appendLength(text []byte, length int) []byte {
	return binary.BigEndian.AppendUint64(text, uint64(length))
}

func truncated(mac hash.Hash) sum {
	var full [sha256.Size]byte
	return sum(mac.Sum(full[:0]))
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

// has reports whether there is a key with the name.
func (f fingerprints) has(name string) bool {
	_, found := slices.BinarySearchFunc(f.keys, name, func(k keyFingerprint, name string) int { return strings.Compare(k.name, name) })
	return found
}
