package openbao

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
)

// minBearer is the minimum length of a bearer token, in bytes.
const minBearer = 16

// bearers has the tokens that authenticate senders of audit lines. Only their hashes are kept.
type bearers struct {
	reloaded[[]bearer]
	stores []string
}

// bearer is a token of one store.
type bearer struct {
	hash  [sha256.Size]byte
	store string
}

// newBearers reads the file. Each line has the name of a store and a token; the name may be missing if there is only one store.
func newBearers(file string, stores []string) (*bearers, error) {
	b := &bearers{stores: stores}
	b.files, b.read = []string{file}, func() (*[]bearer, error) { return b.readTokens(file) }
	return b, b.refresh()
}

// readTokens reads the tokens of a file.
func (b *bearers) readTokens(file string) (*[]bearer, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	var tokens []bearer
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		token, err := b.parse(fields)
		if err != nil {
			return nil, fmt.Errorf("%s: token %d %w", file, len(tokens)+1, err)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: has no token; create one with: openssl rand -hex 32", file)
	}
	return &tokens, nil
}

// parse reads the fields of a line. The error quotes none of them, because any may be a token.
func (b *bearers) parse(fields []string) (bearer, error) {
	token := fields[len(fields)-1]
	switch {
	case len(token) < minBearer:
		return bearer{}, fmt.Errorf("is too short, want %d characters or more; create one with: openssl rand -hex 32", minBearer)
	case len(fields) == 1 && len(b.stores) == 1:
		return bearer{hash: sha256.Sum256([]byte(token)), store: b.stores[0]}, nil
	case len(fields) != 2 || !slices.Contains(b.stores, fields[0]):
		return bearer{}, errors.New("is not for one of the stores, want a line for each: <store> <token>")
	}
	return bearer{hash: sha256.Sum256([]byte(token)), store: fields[0]}, nil
}

// has reports whether a store has a token.
func (b *bearers) has(store string) bool {
	return slices.ContainsFunc(*b.current(), func(one bearer) bool { return one.store == store })
}

// allow reports whether the request has a token of the store, or of any store if the name is empty. Its duration reveals nothing about the tokens.
func (b *bearers) allow(r *http.Request, store string) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sent := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for _, one := range *b.current() {
		same := subtle.ConstantTimeCompare(sent[:], one.hash[:])
		if store == "" || one.store == store {
			found |= same
		}
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}
