package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/apitest"
	"github.com/keyturn/keyturn/tests/testkit/flagpages"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestBothProgramsBecomeReadyInOneProcessAndEnd(t *testing.T) {
	log := &testkit.Log{}
	cmd := newCommand(0)
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
	for _, tt := range []struct{ server, path, want string }{
		{"metrics", "/metrics", "keyturn_watcher_"},
		{"metrics", "/metrics", "keyturn_rollouts_"},
		{"metrics", "/metrics", "reloader_reload_executed_total"},
		{"metrics", "/live", "[+]deciding ok"},
		{"pprof", "/debug/pprof/", "goroutine"},
	} {
		code, body, err := testkit.Get(t.Context(), "http://"+log.Addr(t, tt.server)+tt.path)
		if err != nil || code != 200 || !strings.Contains(body, tt.want) {
			t.Errorf("%s of %s: got %d, %v, want 200 with %q", tt.path, tt.server, code, err, tt.want)
		}
	}
	if got := strings.Count(log.String(), "one account reads secrets and writes workloads"); got != 1 {
		t.Errorf("warnings of what the form gives up: got %d, want 1", got)
	}
	stop()
}

func TestAnArgumentThatIsNoFlagIsIgnored(t *testing.T) {
	cmd := newCommand(0)
	cmd.SetArgs([]string{"--auto-reload-all", "true", "--reload-strategy", "other"})
	testkit.WantError(t, cmd.ExecuteContext(t.Context()), `--reload-strategy: "other", want env-vars or annotations`)
}

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	const about = "The names and defaults are those of Stakater's Reloader 1.4, except for the flags that it does not have: `--cluster`,\n" +
		"`--fingerprint-key-file`, `--kubeconfig`, `--max-rolls-per-hour`, `--metrics-addr`, `--notify-config`, `--settle` and\n" +
		"`--state-dir`. See [one process](reloader.md#one-process).\n\n"
	flagpages.Check(t, "reloader", "The flags of reloader", about, newCommand(0))
}
