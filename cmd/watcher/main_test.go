package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/apitest"
	"github.com/keyturn/keyturn/tests/testkit/flagpages"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestMain(m *testing.M) { natstest.Main(m) }

func TestTheWatcherBecomesReadyClaimsItsNameAndEnds(t *testing.T) {
	url := natstest.Account(t)
	key := filepath.Join(t.TempDir(), "key")
	testkit.Must(t, os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))), 0o600))
	log := &testkit.Log{}
	cmd := newCommand(0)
	cmd.SetErr(log)
	cmd.SetArgs([]string{
		"--cluster", "west", "--kubeconfig", apitest.Start(t), "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0",
		"--nats-url", url, "--fingerprint-key-file", key,
	})
	stop := testkit.Run(t, "watcher", func(ctx context.Context) error {
		if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	ready := log.AwaitReady(t)
	if want := "[+]sources ok\n[+]nats ok\n"; ready != want {
		t.Errorf("checks: got %q, want %q", ready, want)
	}
	connection, err := bus.Connect(t.Context(), bus.ConnectOptions{URL: url, Cluster: "west"})
	testkit.Must(t, err)
	defer connection.Close()
	b, err := bus.Open(t.Context(), connection, "west", nil)
	testkit.Must(t, err)
	check := func() error { return b.CheckClaim(t.Context(), "uid-of-another-cluster", "") }
	if err := natstest.Answered(t, check); !errors.Is(err, bus.ErrClaimed) {
		t.Errorf("the name of the cluster: got %v, want it claimed", err)
	}
	stop()
}

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	flagpages.Check(t, "watcher", "The flags of the watcher", "", newCommand(0))
}
