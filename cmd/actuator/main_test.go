package main

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/apitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheActuatorBecomesReadyAndEnds(t *testing.T) {
	log := &testkit.Log{}
	cmd := newCommand(0)
	cmd.SetErr(log)
	cmd.SetArgs([]string{
		"--cluster", "west", "--kubeconfig", apitest.Start(t), "--leader-elect=false", "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0",
		"--nats-embedded", "--nats-store-dir", t.TempDir(),
	})
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
}
