package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/apitest"
	"github.com/keyturn/keyturn/tests/testkit/flagpages"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestTheActuatorBecomesReadyAndEnds(t *testing.T) {
	dir := t.TempDir()
	testkit.NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
	config := filepath.Join(dir, "nats.conf")
	block := `tls: { cert_file: "` + filepath.Join(dir, "tls.crt") + `", key_file: "` + filepath.Join(dir, "tls.key") + `" }`
	testkit.Must(t, os.WriteFile(config, []byte(block), 0o600))
	for _, tt := range []struct {
		name string
		args []string
		// env are the variables of the commands in its pod.
		env map[string]string
	}{
		{"without TLS", nil, nil},
		{"with TLS", []string{"--nats-config", config}, nil},
		{"with TLS, beside commands that use it", []string{"--nats-config", config}, map[string]string{
			"KEYTURN_NATS_URL": "tls://127.0.0.1:1", "KEYTURN_NATS_CA": filepath.Join(dir, "none"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			log := &testkit.Log{}
			cmd := newCommand(0)
			cmd.SetErr(log)
			cmd.SetArgs(append([]string{
				"--cluster", "west", "--kubeconfig", apitest.Start(t), "--leader-elect=false", "--metrics-addr", "127.0.0.1:0",
				"--health-addr", "127.0.0.1:0", "--nats-store-dir", testkit.StoreDir(t),
			}, tt.args...))
			stop := testkit.Run(t, "actuator", func(ctx context.Context) error {
				if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
					return err
				}
				return nil
			})
			ready := log.AwaitReady(t)
			if want := "[+]workloads ok\n[+]nats ok\n[+]jetstream ok\n"; ready != want {
				t.Errorf("checks: got %q, want %q", ready, want)
			}
			stop()
		})
	}
}

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	flagpages.Check(t, "actuator", "The flags of the actuator", "", newCommand(0))
}
