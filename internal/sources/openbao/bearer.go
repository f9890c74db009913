package openbao

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
)

// minBearer is the minimum length of a bearer token, in bytes.
const minBearer = 16

// bearers are the tokens that authenticate senders of audit lines. Only their hashes are kept.
type bearers struct {
	file   string
	hashes atomic.Pointer[[][sha256.Size]byte]
	loaded stamp
}

// newBearers reads the file.
func newBearers(file string) (*bearers, error) {
	b := &bearers{file: file}
	return b, b.refresh()
}

// refresh reads the file if it changed. If it cannot be read, it keeps the tokens that it read last.
func (b *bearers) refresh() error {
	onDisk, err := stampOf(b.file)
	if err != nil || onDisk == b.loaded {
		return err
	}
	content, err := os.ReadFile(b.file)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	var hashes [][sha256.Size]byte
	for line := range strings.Lines(string(content)) {
		token := strings.TrimSpace(line)
		if token == "" {
			continue
		}
		if len(token) < minBearer {
			return fmt.Errorf("%s: token %d is too short, want %d characters or more; create one with: openssl rand -hex 32",
				b.file, len(hashes)+1, minBearer)
		}
		hashes = append(hashes, sha256.Sum256([]byte(token)))
	}
	if len(hashes) == 0 {
		return fmt.Errorf("%s: has no token; create one with: openssl rand -hex 32", b.file)
	}
	b.loaded = onDisk
	b.hashes.Store(&hashes)
	return nil
}

// allow reports whether the request has one of the tokens. The time that it takes reveals nothing about them.
func (b *bearers) allow(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sent := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for _, hash := range *b.hashes.Load() {
		found |= subtle.ConstantTimeCompare(sent[:], hash[:])
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}
