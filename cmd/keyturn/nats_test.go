package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/tests/testkit"
)

// deployedNATS writes the files that the container of the server has, with the users of NATS in dir, and returns the arguments of the command.
func deployedNATS(t *testing.T, dir string) []string {
	t.Helper()
	config, err := os.ReadFile("../../deploy/programs/nats.conf")
	testkit.Must(t, err)
	for name, content := range map[string]string{"nats.conf": string(config), "storage.key": strings.Repeat("k", 44) + "\n"} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	testkit.SetNATSVariables(t, dir, "watcher", "actuator", "reader")
	return []string{
		"--cluster", "west", "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0", "--nats-config", filepath.Join(dir, "nats.conf"),
		"--nats-storage-key", filepath.Join(dir, "storage.key"), "--nats-store-dir", testkit.StoreDir(t),
	}
}

// natsURL returns the address that the server has logged.
func natsURL(t *testing.T, log *testkit.Log) string {
	t.Helper()
	_, text, _ := strings.Cut(log.String(), `"embedded nats server ready"`)
	_, text, _ = strings.Cut(text, `"url":"`)
	url, _, found := strings.Cut(text, `"`)
	if !found {
		t.Fatalf("the log has no address:\n%s", log)
	}
	return url
}

func TestTheServerBecomesReadyServesAndEndsWithoutAnAPIServer(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	dir, log := t.TempDir(), &testkit.Log{}
	cmd := newNATSCommand(0)
	cmd.SetErr(log)
	cmd.SetArgs(deployedNATS(t, dir))
	stop := testkit.Run(t, "nats", func(ctx context.Context) error {
		if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	if ready, want := log.AwaitReady(t), "[+]jetstream ok\n"; ready != want {
		t.Errorf("checks: got %q, want %q", ready, want)
	}
	user, err := nats.NkeyOptionFromSeed(filepath.Join(dir, "actuator.nk"))
	testkit.Must(t, err)
	nc, err := nats.Connect(natsURL(t, log), user, nats.RootCAs(filepath.Join(dir, "ca.crt")), nats.Timeout(testkit.Patience))
	if err != nil {
		t.Fatalf("the actuator's user: %v", err)
	}
	nc.Close()
	if nc, err := nats.Connect(natsURL(t, log), nats.RootCAs(filepath.Join(dir, "ca.crt")), nats.Timeout(testkit.Patience)); err == nil {
		nc.Close()
		t.Error("somebody without a key is let in")
	}
	_, metrics, err := testkit.Get(t.Context(), "http://"+log.Addr(t, "metrics")+"/metrics")
	if err != nil || !strings.Contains(metrics, "keyturn_nats_storage_limit_bytes") || !strings.Contains(metrics, `k8s_cluster_name="west"`) {
		t.Errorf("metrics: %v, want those of the storage with the cluster in\n%s", err, metrics)
	}
	stop()
}

func TestASettingThatTheServerCannotHaveIsOneLine(t *testing.T) {
	dir := t.TempDir()
	used := deployedNATS(t, dir)
	wrong := filepath.Join(dir, "wrong.conf")
	testkit.Must(t, os.WriteFile(wrong, []byte("}{"), 0o600))
	short := filepath.Join(dir, "short.key")
	testkit.Must(t, os.WriteFile(short, []byte("k"), 0o600))
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no directory", []string{"--nats-store-dir="}, "--nats-store-dir: is empty"},
		{"a directory that is a file", []string{"--nats-store-dir", wrong}, "--nats-store-dir"},
		{"a configuration that is none", []string{"--nats-config", wrong}, "reading " + wrong},
		{"no configuration", []string{"--nats-config", filepath.Join(dir, "none")}, "reading " + filepath.Join(dir, "none")},
		{"a key that is cut", []string{"--nats-storage-key", short}, "--nats-storage-key: " + short + " has 1 characters"},
		{"an address", []string{"--health-addr=here"}, `--health-addr: "here"`},
		{"an API server", []string{"--kubeconfig=a"}, "unknown flag: --kubeconfig"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := newNATSCommand(0)
			cmd.SetErr(new(testkit.Log))
			cmd.SetArgs(append(used, tt.args...))
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tt.want)
			}
		})
	}
}

func TestTwoServersDoNotWriteToOneDirectory(t *testing.T) {
	log, args := &testkit.Log{}, deployedNATS(t, t.TempDir())
	first := newNATSCommand(0)
	first.SetErr(log)
	first.SetArgs(args)
	testkit.Run(t, "first", func(ctx context.Context) error {
		if err := first.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	log.AwaitReady(t)
	second := newNATSCommand(0)
	second.SetErr(new(testkit.Log))
	second.SetArgs(args)
	if err := second.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "another process uses the directory") {
		t.Errorf("the second: got %v, want that it ends", err)
	}
}
