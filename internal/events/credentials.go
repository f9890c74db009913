package events

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// credentials returns the option for a credentials file or a file with a bare NKey seed. No error quotes the content.
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

// nkeyUser authenticates with a bare NKey. The client library reads the seed at each connection attempt, but the public key
// only once. After a rotation, it would keep sending the new signature with the old public key.
type nkeyUser struct {
	path string
	// conn is set once nats.Connect has returned.
	conn atomic.Pointer[nats.Conn]
}

// read reads the seed. The caller must wipe the key pair.
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

// sign signs the server's nonce. After a rotation the server rejects this attempt, and the next one uses the new public
// key. The library holds the lock of the connection, so writing its options is safe.
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
