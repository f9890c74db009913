package openbao

import (
	"context"
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

// bearers has the tokens that authenticate senders of audit lines.
type bearers struct{ *reloaded[[]bearer] }

// bearer is a token of one store. Only its hash is kept.
type bearer struct {
	hash  [sha256.Size]byte
	store string
}

// newBearers reads the file of the options.
func newBearers(o *Options, stores []string) (*bearers, error) {
	tokens, err := newReloaded[[]bearer](tokenFile{o.AuditTokenFile, stores}, o)
	return &bearers{tokens}, err
}

// has reports whether a store has a token.
func (b *bearers) has(store string) bool {
	return slices.ContainsFunc(*b.current(context.Background()), func(one bearer) bool { return one.store == store })
}

// allow reports whether the request has a token of the store, or of any store if the name is empty. Its duration reveals nothing about the tokens.
func (b *bearers) allow(r *http.Request, store string) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sent := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for _, one := range *b.current(r.Context()) {
		same := subtle.ConstantTimeCompare(sent[:], one.hash[:])
		if store == "" || one.store == store {
			found |= same
		}
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}

// tokenFile is a file of tokens. Each line has the name of a store and a token; the name may be missing if there is only one store.
type tokenFile struct {
	path   string
	stores []string
}

func (f tokenFile) load() (*[]bearer, error) {
	content, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	var tokens []bearer
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		token, err := f.parse(fields)
		if err != nil {
			return nil, fmt.Errorf("%s: token %d %w", f.path, len(tokens)+1, err)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: has no token; create one with: openssl rand -hex 32", f.path)
	}
	return &tokens, nil
}

// parse reads the fields of a line. The error quotes none of them, because any may be a token.
func (f tokenFile) parse(fields []string) (bearer, error) {
	token := fields[len(fields)-1]
	one := bearer{hash: sha256.Sum256([]byte(token))}
	switch {
	case len(token) < minBearer:
		return bearer{}, fmt.Errorf("is too short, want %d characters or more; create one with: openssl rand -hex 32", minBearer)
	case len(fields) == 1 && len(f.stores) == 1:
		one.store = f.stores[0]
	case len(fields) == 2 && slices.Contains(f.stores, fields[0]):
		one.store = fields[0]
	default:
		return bearer{}, errors.New("is not for one of the stores, want a line for each: <store> <token>")
	}
	return one, nil
}
