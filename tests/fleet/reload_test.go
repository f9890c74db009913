package fleet

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestKeysAndCertificatesAreReplacedWithoutARestart replaces all that a server and a program prove their identity with
// while they run.
func TestKeysAndCertificatesAreReplacedWithoutARestart(t *testing.T) {
	t.Parallel()
	h := render(t, "eu:leaf")
	substitute(t, filepath.Join(h.Dir, "eu", "server.conf"),
		"  key_file: $NATS_TLS_KEY\n}", "  key_file: $NATS_TLS_KEY\n  ca_file: $NATS_TLS_CA\n  verify: true\n}")
	server := h.server("leaf-eu", "eu")
	server.SetEnv("NATS_HUB=tls://127.0.0.1:1")
	h.launch(server)

	way := newRelay(t, server.Address())
	folder := t.TempDir()
	mine := testbed.Certificates{CA: filepath.Join(folder, "ca.crt"), Cert: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key")}
	replace(t, mine, h.Certificates)
	options := bus.ConnectOptions{
		URL: "tls://" + way.address(), Cluster: "eu", Role: "watcher", CredsFile: h.Seed("eu-watcher"), CAFile: mine.CA,
	}
	untilRefused(t, server, options)
	options.CAFile = folder
	connection, err := bus.Connect(t.Context(), options)
	testkit.Must(t, err)
	t.Cleanup(connection.Close)
	connectsAgain := func(times uint64) {
		t.Helper()
		testkit.Await(t, "the program is connected again", func(context.Context) bool {
			return connection.Stats().Reconnects >= times && connection.IsConnected()
		})
	}

	t.Run("the key of the program", func(t *testing.T) {
		old, err := os.ReadFile(filepath.Join(h.Dir, "keys", "eu-watcher.pub"))
		testkit.Must(t, err)
		public := testkit.NewNATSUser(t, filepath.Join(h.Dir, "keys"), "eu-watcher")
		substitute(t, filepath.Join(h.Dir, "eu", "accounts.conf"), strings.TrimSpace(string(old)), public)
		// The server throws out whom it does not know any more.
		testkit.Must(t, server.Process().Signal(syscall.SIGHUP))
		connectsAgain(1)
	})
	t.Run("the certificates of both, and their authority", func(t *testing.T) {
		fresh, err := testbed.NewCertificates(t.TempDir())
		testkit.Must(t, err)
		replace(t, h.Certificates, fresh)
		replace(t, mine, fresh)
		reloads := strings.Count(server.Process().Output(), "Reloaded server configuration")
		testkit.Must(t, server.Process().Signal(syscall.SIGHUP))
		testkit.Await(t, "the server has read its files", func(context.Context) bool {
			return strings.Count(server.Process().Output(), "Reloaded server configuration") > reloads
		})
		before := connection.Stats().Reconnects
		way.cut()
		way.mend()
		connectsAgain(before + 1)
	})
}

// untilRefused has a program without a certificate try to connect until the server refuses it.
func untilRefused(t *testing.T, server *testbed.NATSServer, options bus.ConnectOptions) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		connection, err := bus.Connect(ctx, options)
		if err == nil {
			connection.Close()
		}
		ended <- err
	}()
	testkit.Await(t, "the server refuses who has no certificate", func(context.Context) bool {
		return strings.Contains(server.Process().Output(), "client didn't provide a certificate")
	}, server.Process().Output)
	cancel()
	if err := testkit.Receive(t, "the end of the attempt", ended); err == nil {
		t.Fatal("the program is connected without a certificate")
	}
}

// substitute replaces a part of a file, which must be there.
func substitute(t *testing.T, path, old, replacement string) {
	t.Helper()
	content, err := os.ReadFile(path)
	testkit.Must(t, err)
	if !bytes.Contains(content, []byte(old)) {
		t.Fatalf("%s has no %q", path, old)
	}
	testkit.Must(t, os.WriteFile(path, bytes.ReplaceAll(content, []byte(old), []byte(replacement)), 0o600))
}

// replace copies certificates over others.
func replace(t *testing.T, to, from testbed.Certificates) {
	t.Helper()
	for target, source := range map[string]string{to.CA: from.CA, to.Cert: from.Cert, to.Key: from.Key} {
		content, err := os.ReadFile(source)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(target, content, 0o600))
	}
}
