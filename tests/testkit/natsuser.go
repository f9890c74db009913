package testkit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nkeys"
)

// NewNATSUser writes the seed of a new NATS user to the file <name>.nk in a folder, and returns the user's public key.
func NewNATSUser(t testing.TB, dir, name string) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".nk"), seed, 0o600); err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}
