package events

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// credentials tells a credentials file from a file with a bare seed. No error quotes the content.
func credentials(path string, user *nkeyUser) (nats.Option, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("nats-creds: %w", err)
	}
	defer clear(content)
	if strings.Contains(string(content), "BEGIN NATS USER JWT") {
		return nats.UserCredentials(path), nil
	}
	user.path = path
	pair, public, err := user.read()
	if err != nil {
		return nil, err
	}
	pair.Wipe()
	return nats.Nkey(public, user.sign), nil
}

// nkeyUser is a user who is known by his key alone. The client library reads the seed with each connection, but takes
// whose it is from the first: of a seed that was replaced it would show the new signature with the old name, for ever.
type nkeyUser struct {
	path string
	// conn is the connection, as soon as there is one.
	conn atomic.Pointer[nats.Conn]
}

// read reads the seed. Who has it wipes it.
func (u *nkeyUser) read() (pair nkeys.KeyPair, public string, err error) {
	content, err := os.ReadFile(u.path)
	if err != nil {
		return nil, "", fmt.Errorf("nats-creds: %w", err)
	}
	defer clear(content)
	if pair, err = nkeys.ParseDecoratedUserNKey(content); err == nil {
		public, err = pair.PublicKey()
	}
	if err != nil {
		return nil, "", fmt.Errorf("nats-creds %s: want a credentials file with a user's JWT, or a user's NKey seed", u.path)
	}
	return pair, public, nil
}

// sign signs what the server asks to be signed. Where the seed was replaced the server refuses this attempt, and the next
// has the new name. The library calls it with the connection locked, so the options are nobody else's.
func (u *nkeyUser) sign(nonce []byte) ([]byte, error) {
	pair, public, err := u.read()
	if err != nil {
		return nil, err
	}
	defer pair.Wipe()
	if nc := u.conn.Load(); nc != nil {
		nc.Opts.Nkey = public
	}
	return pair.Sign(nonce)
}
