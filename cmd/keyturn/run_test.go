package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/apitest"
)

func TestBothProgramsBecomeReadyInOnePodWithoutAVolumeAndEnd(t *testing.T) {
	dir := testkit.StoreDir(t)
	t.Setenv("TMPDIR", dir)
	t.Setenv("KEYTURN_CLUSTER", "west")
	log := &testkit.Log{}
	cmd := newRunCommand(0)
	cmd.SetErr(log)
	cmd.SetArgs([]string{
		"--kubeconfig", apitest.Start(t), "--leader-elect=false", "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0",
		"--nats-listen", "127.0.0.1:-1",
	})
	stop := testkit.Run(t, "run", func(ctx context.Context) error {
		if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	ready := log.AwaitReady(t)
	if want := "[+]workloads ok\n[+]actuator nats ok\n[+]sources ok\n[+]watcher nats ok\n[+]jetstream ok\n"; ready != want {
		t.Errorf("checks: got %q, want %q", ready, want)
	}
	stop()
	// The API server of the test has no Secrets, so the keys are beside the streams.
	for _, file := range []string{"fingerprint.key", "reader.nk"} {
		info, err := os.Stat(filepath.Join(dir, "keyturn", file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v, want a private file", file, info, err)
		}
	}
}

func TestWhatOneProcessCannotBeIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"a NATS that others reach", []string{"--nats-listen", "0.0.0.0:4222"}, `listen "0.0.0.0:4222" is not a loopback address`},
		{"an outside NATS", []string{"--nats-url", "nats://nats:4222"}, "unknown flag: --nats-url"},
		{"no name", []string{"--cluster", ""}, "--cluster:"},
		{"a setting of the watcher", []string{"--sources", "pods"}, "--sources"},
		{"a setting of the actuator", []string{"--roll-on-create", "sometimes"}, `--roll-on-create: "sometimes"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := newRunCommand(0)
			cmd.SetErr(new(testkit.Log))
			cmd.SetArgs(append([]string{
				"--cluster", "west", "--kubeconfig", apitest.Start(t), "--leader-elect=false", "--metrics-addr", "", "--health-addr", "",
				"--nats-store-dir", testkit.StoreDir(t),
			}, tt.args...))
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
