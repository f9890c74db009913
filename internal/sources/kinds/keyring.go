package kinds

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// minKeyBytes is the length of the shortest accepted key: the output size of SHA-256, as RFC 2104 recommends.
const minKeyBytes = 32

// Keyring contains the keys for fingerprints. The first key makes new fingerprints. The others remain for comparisons with events that were made with
// them, so that a new key causes no changes.
type Keyring struct{ keys []ringKey }

type ringKey struct {
	// id is eight hex digits derived from the key alone.
	id     string
	secret []byte
}

// LoadKeyring reads a key file: one key a line, at least 32 bytes in standard base64, the current key first. Empty lines and lines that begin with
// '#' are skipped.
func LoadKeyring(path string) (*Keyring, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--fingerprint-key-file: %w; make one with: openssl rand -base64 32", err)
	}
	return ReadKeyring("--fingerprint-key-file "+path, content)
}

// ReadKeyring returns the keys of a key file's content. Errors name its origin.
func ReadKeyring(from string, content []byte) (*Keyring, error) {
	ring, err := parseKeyring(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; make a key with: openssl rand -base64 32", from, err)
	}
	return ring, nil
}

func parseKeyring(content []byte) (*Keyring, error) {
	ring, number := &Keyring{}, 0
	for line := range strings.Lines(string(content)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			// The decoder's error would quote a part of the key.
			return nil, fmt.Errorf("line %d is not base64", number)
		}
		if len(secret) < minKeyBytes {
			return nil, fmt.Errorf("line %d holds %d bytes, want at least %d", number, len(secret), minKeyBytes)
		}
		k := newKey(secret)
		if slices.ContainsFunc(ring.keys, func(known ringKey) bool { return known.id == k.id }) {
			return nil, fmt.Errorf("line %d repeats a key", number)
		}
		ring.keys = append(ring.keys, k)
	}
	if len(ring.keys) == 0 {
		return nil, fmt.Errorf("holds no key, want at least one of %d bytes in base64", minKeyBytes)
	}
	return ring, nil
}

func newKey(secret []byte) ringKey {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("keyturn key id"))
	return ringKey{id: hex.EncodeToString(mac.Sum(nil)[:4]), secret: secret}
}

// fingerprint returns the fingerprints of a source's data with every key, in the order of the ring.
func (r *Keyring) fingerprint(source events.Source, data map[string][]byte) []fingerprints {
	names := slices.Sorted(maps.Keys(data))
	result := make([]fingerprints, 0, len(r.keys))
	for _, k := range r.keys {
		result = append(result, newFingerprints(k, source, names, data))
	}
	return result
}

// all returns the fingerprint of all keys of a source, made from the fingerprints of the keys.
func (k ringKey) all(source events.Source, keys []keyFingerprint) sum {
	return sumOfAll(hmac.New(sha256.New, k.secret), source, keys)
}

// digest returns the fingerprint of texts about a source. The domain identifies their meaning.
func (k ringKey) digest(domain string, source events.Source, parts ...[]byte) sum {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write(identityOf(domain, source))
	for _, part := range parts {
		mac.Write(appendLength(nil, len(part)))
		mac.Write(part)
	}
	return truncated(mac)
}

// digest returns the fingerprints of texts about a source with every key, in the order of the ring.
func (r *Keyring) digest(domain string, source events.Source, parts ...[]byte) []sum {
	sums := make([]sum, 0, len(r.keys))
	for _, k := range r.keys {
		sums = append(sums, k.digest(domain, source, parts...))
	}
	return sums
}
