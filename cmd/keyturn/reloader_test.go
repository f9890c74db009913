package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/apitest"
)

func TestBothProgramsBecomeReadyWithReloadersFlagsAndEnd(t *testing.T) {
	log := &testkit.Log{}
	cmd := newReloaderCommand(0)
	cmd.SetErr(log)
	cmd.SetArgs([]string{
		"--kubeconfig", apitest.Start(t), "--state-dir", testkit.StoreDir(t), "--metrics-addr", "127.0.0.1:0", "--log-format", "json",
		"--enable-pprof", "--pprof-addr", "127.0.0.1:0",
	})
	stop := testkit.Run(t, "reloader", func(ctx context.Context) error {
		if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	ready := log.AwaitReadyAt(t, "metrics")
	if want := "[+]workloads ok\n[+]actuator nats ok\n[+]sources ok\n[+]watcher nats ok\n[+]jetstream ok\n"; ready != want {
		t.Errorf("checks: got %q, want %q", ready, want)
	}
	for _, tt := range []struct {
		server, path string
		code         int
		want         string
	}{
		{"metrics", "/metrics", 200, `service_name="keyturn-reloader"`},
		{"metrics", "/metrics", 200, "keyturn_watcher_"},
		{"metrics", "/metrics", 200, "keyturn_rollouts_"},
		{"metrics", "/metrics", 200, "reloader_reload_executed_total"},
		{"metrics", "/live", 200, "[+]deciding ok"},
		{"metrics", "/livez", 200, "[+]deciding ok"},
		{"metrics", "/debug/pprof/", 404, ""},
		{"pprof", "/debug/pprof/", 200, "goroutine"},
	} {
		code, body, err := testkit.Get(t.Context(), "http://"+log.Addr(t, tt.server)+tt.path)
		if err != nil || code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s of %s: got %d, %v, want %d with %q", tt.path, tt.server, code, err, tt.code, tt.want)
		}
	}
	if got := strings.Count(log.String(), "one account reads secrets and writes workloads"); got != 1 {
		t.Errorf("warnings of what the form gives up: got %d, want 1", got)
	}
	stop()
}

func TestAnArgumentThatIsNoFlagIsIgnored(t *testing.T) {
	cmd := newReloaderCommand(0)
	cmd.SetArgs([]string{"--auto-reload-all", "true", "--reload-strategy", "other"})
	testkit.WantError(t, cmd.ExecuteContext(t.Context()), `--reload-strategy: "other", want env-vars or annotations`)
}
