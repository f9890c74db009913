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

// Keyring holds the keys for fingerprints. New fingerprints are made with the first key. The others are kept to compare with events that were made
// with them, so that adding a key changes nothing.
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
	ring, err := parseKeyring(content)
	if err != nil {
		return nil, fmt.Errorf("--fingerprint-key-file %s: %w; make a key with: openssl rand -base64 32", path, err)
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
		result = append(result, newFingerprints(k.id, k.secret, source, names, data))
	}
	return result
}
