package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/apitest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestADryRunOfTheActuatorIsNoneOfAReplay(t *testing.T) {
	t.Setenv("KEYTURN_DRY_RUN", "true")
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"explain tells what the actuator does", []string{"explain", "deployment/web"}, "true"},
		{"a replay asks for it", []string{"dead-letters", "replay", "--all"}, "false"},
		{"a replay that is asked to only list", []string{"dead-letters", "replay", "--all", "--dry-run"}, "true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			actuator, got := newCommand(0), ""
			cmd, _, err := actuator.Find(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				got = cmd.Flag("dry-run").Value.String()
				return nil
			}
			actuator.SetArgs(tt.args)
			if err := actuator.ExecuteContext(t.Context()); err != nil || got != tt.want {
				t.Errorf("--dry-run=%s (%v), want %s", got, err, tt.want)
			}
		})
	}
}

func TestTheActuatorBecomesReadyAndEnds(t *testing.T) {
	dir := t.TempDir()
	testkit.NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
	config := filepath.Join(dir, "nats.conf")
	block := `tls: { cert_file: "` + filepath.Join(dir, "tls.crt") + `", key_file: "` + filepath.Join(dir, "tls.key") + `" }`
	if err := os.WriteFile(config, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
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
				"--health-addr", "127.0.0.1:0", "--nats-embedded", "--nats-store-dir", testkit.StoreDir(t),
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
