package sources

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// minKeyBytes is the shortest fingerprint key that is taken: as long as the output of SHA-256, as RFC 2104 asks.
const minKeyBytes = 32

// Keyring holds the keys under which content is fingerprinted. New fingerprints are made under the first; the others are
// there so that the events which were made under them can still be compared, and adding a key changes nothing.
type Keyring struct {
	keys []key
}

type key struct {
	// id is eight hex digits that depend on the key and on nothing else.
	id     string
	secret []byte
}

// LoadKeyring reads a key file: one key a line, at least 32 bytes in standard base64, the current key first. Empty lines
// and lines that begin with '#' are passed over.
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
	ring := &Keyring{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			// The decoder's message would quote a part of the key.
			return nil, fmt.Errorf("line %d is not base64", number)
		}
		if len(secret) < minKeyBytes {
			return nil, fmt.Errorf("line %d holds %d bytes, want at least %d", number, len(secret), minKeyBytes)
		}
		k := newKey(secret)
		if ring.index(k.id) >= 0 {
			return nil, fmt.Errorf("line %d repeats a key", number)
		}
		ring.keys = append(ring.keys, k)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading lines: %w", err)
	}
	if len(ring.keys) == 0 {
		return nil, fmt.Errorf("holds no key, want at least one of %d bytes in base64", minKeyBytes)
	}
	return ring, nil
}

func newKey(secret []byte) key {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("keyturn key id"))
	return key{id: hex.EncodeToString(mac.Sum(nil)[:4]), secret: secret}
}

// index tells where the key with the id stands, -1 where it is not in the ring.
func (r *Keyring) index(id string) int {
	for i, k := range r.keys {
		if k.id == id {
			return i
		}
	}
	return -1
}
