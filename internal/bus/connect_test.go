package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestConnectWaitsForAServerThatIsNotThereYet(t *testing.T) {
	s := newServer(t, testkit.StoreDir(t))
	s.start(freeAddress(t)) // which stays free while the server is away
	var log testkit.Log
	connected := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	url := s.ClientURL()
	s.restart(func() {
		go func() {
			nc, err := Connect(ctx, ConnectOptions{URL: url, Cluster: testCluster, Logger: log.Logger()}, impatient()...)
			if err == nil {
				nc.Close()
			}
			connected <- err
		}()
		testkit.Eventually(t, "the log says that nats is unreachable", func() bool { return strings.Contains(log.String(), "nats unreachable") })
	})
	if err := <-connected; err != nil {
		t.Error(err)
	}
}

func TestConnectEndsWithItsContextAndGivesNothingAway(t *testing.T) {
	var log testkit.Log
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	// Port 1 of the loopback interface has no server.
	_, err := Connect(ctx, ConnectOptions{URL: "nats://user:hunter2@127.0.0.1:1, nats://hunter3@127.0.0.1:1", Cluster: testCluster, Logger: log.Logger()})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	text := fmt.Sprint(err) + log.String()
	if !strings.Contains(text, "nats://127.0.0.1:1,nats://127.0.0.1:1") || strings.Contains(text, "hunter") {
		t.Errorf("want the URLs without credentials in: %s", text)
	}
}

func TestConnectRefuses(t *testing.T) {
	dir := t.TempDir()
	nonsense := filepath.Join(dir, "nonsense")
	testkit.Must(t, os.WriteFile(nonsense, []byte("hunter2"), 0o600))
	for _, tt := range []struct {
		name string
		opts ConnectOptions
		want string
	}{
		{"a cluster name that is not a label", ConnectOptions{Cluster: "a.b"}, `cluster "a.b", want`},
		{"a URL that is none", ConnectOptions{Cluster: "c", URL: "nats://user:hunter2@a b"}, "nats-url: want URLs like"},
		{"credentials that are none", ConnectOptions{Cluster: "c", CredsFile: nonsense}, "nats-creds " + nonsense + ": want"},
		{"a folder without certificates", ConnectOptions{Cluster: "c", CAFile: dir}, "open " + filepath.Join(dir, "ca.crt")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Connect(t.Context(), tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestConnectUsesPrivateInboxes(t *testing.T) {
	s := sharedServer(t)
	for role, want := range map[string]string{"": "_INBOX.prod-eu.", "watcher": "_INBOX_watcher.prod-eu."} {
		nc, err := Connect(t.Context(), ConnectOptions{URL: s.url(), Cluster: testCluster, Role: role})
		testkit.Must(t, err)
		if inbox := nc.NewInbox(); !strings.HasPrefix(inbox, want) {
			t.Errorf("role %q: got %s, want %s", role, inbox, want)
		}
		nc.Close()
	}
}
