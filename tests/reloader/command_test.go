package reloader

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMetricsAndProbesAreServedAtOneAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.deploy("web", auto(), readDB)
	r.start("--enable-pprof", "--pprof-addr", "127.0.0.1:0")
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
	testkit.Await(t, "the roll is counted", func(ctx context.Context) bool {
		_, body, err := r.program.Get(ctx, "metrics", "/metrics")
		return err == nil && strings.Contains(body, "\nreloader_reload_executed_total{") && strings.Contains(body, "\nkeyturn_watcher_") &&
			strings.Contains(body, "\nkeyturn_rollouts_")
	})
	for _, tt := range []struct {
		component, path string
		want            int
	}{
		{"metrics", "/live", http.StatusOK},
		{"metrics", "/livez", http.StatusOK},
		{"metrics", "/readyz", http.StatusOK},
		{"metrics", "/debug/pprof/", http.StatusNotFound},
		{"pprof", "/debug/pprof/", http.StatusOK},
	} {
		code, _, err := r.program.Get(t.Context(), tt.component, tt.path)
		if err != nil || code != tt.want {
			t.Errorf("%s of %s: got %d, %v, want %d", tt.path, tt.component, code, err, tt.want)
		}
	}
	r.stop()
}

func TestWhatItCannotDoIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"a flag that Reloader does not have", []string{"--reload-everything"}, []string{"error: unknown flag: --reload-everything"}},
		{
			"all that cannot be done at once",
			[]string{"--enable-ha", "--reload-strategy=default"},
			[]string{
				`error: POD_NAME: "", want the one of this pod with --enable-ha`,
				`error: POD_NAMESPACE: "", want the one of this pod with --enable-ha`,
				`error: --reload-strategy: "default", want env-vars or annotations`,
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), command.Binary(), append([]string{"reloader"}, tt.args...)...).CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("got %v, want exit code 1", err)
			}
			testkit.WantEqual(t, "output", tt.want, strings.Split(strings.TrimSpace(string(out)), "\n"))
		})
	}
}

func TestTheKubeconfigOfTheEnvironmentIsUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	theirs, err := plane.ServiceAccountKubeconfig(t.Context(), programs.SystemNamespace, "reloader")
	testkit.Must(t, err)
	content, err := os.ReadFile(theirs)
	testkit.Must(t, err)
	// The variable is a list, and the name of their file has what separates it.
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	testkit.Must(t, os.WriteFile(kubeconfig, content, 0o600))
	r.secret("db", map[string]string{"password": "one"})
	r.deploy("web", auto(), readDB)
	r.startWith([]string{"KUBECONFIG=" + kubeconfig}, "--kubeconfig=", "--namespaces", r.namespace)
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
}
