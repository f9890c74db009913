package testkit

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	WriteFile(t, filepath.Join(dir, name+".nk"), seed)
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}

// SetNATSVariables sets, for the test, the variables of deploy/programs/nats.conf to new users and any free port. The seeds of the users and the
// files of the certificate are in the folder.
func SetNATSVariables(t testing.TB, dir string, users ...string) {
	t.Helper()
	for _, user := range users {
		t.Setenv("NATS_"+strings.ToUpper(user)+"_KEY", NewNATSUser(t, dir, user))
	}
	NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
	t.Setenv("NATS_TLS_CERT", filepath.Join(dir, "tls.crt"))
	t.Setenv("NATS_TLS_KEY", filepath.Join(dir, "tls.key"))
	t.Setenv("NATS_LISTEN", "127.0.0.1:-1")
}
