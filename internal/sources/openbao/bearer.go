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

// minBearer is how long a bearer token must be, in bytes.
const minBearer = 16

// bearers are the tokens that senders of audit lines authenticate with. Only their hashes are kept.
type bearers struct {
	file   string
	hashes atomic.Pointer[[][sha256.Size]byte]
	seen   stamp
}

// newBearers reads the file.
func newBearers(file string) (*bearers, error) {
	b := &bearers{file: file}
	return b, b.refresh()
}

// refresh reads the file where it has changed. Where it cannot be read, the tokens that were read last stay.
func (b *bearers) refresh() error {
	seen, err := stampOf(b.file)
	if err != nil || seen == b.seen {
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
			return fmt.Errorf("%s: token %d is too short, want %d characters or more; make one with: openssl rand -hex 32", b.file, len(hashes)+1, minBearer)
		}
		hashes = append(hashes, sha256.Sum256([]byte(token)))
	}
	if len(hashes) == 0 {
		return fmt.Errorf("%s: has no token; make one with: openssl rand -hex 32", b.file)
	}
	b.seen = seen
	b.hashes.Store(&hashes)
	return nil
}

// allow tells whether the request has one of the tokens. How long that takes tells nothing of the tokens.
func (b *bearers) allow(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sent := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for _, hash := range *b.hashes.Load() {
		found |= subtle.ConstantTimeCompare(sent[:], hash[:])
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}
