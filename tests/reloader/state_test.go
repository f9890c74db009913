package reloader

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAStartRollsNothingThatHasNotChanged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// lost are the parts of the state that are gone when the command starts again.
		lost []string
	}{
		{"with its state", nil},
		{"without its key", []string{"fingerprint.key"}},
		{"without its streams", []string{"nats"}},
		{"without its state", []string{"."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for _, name := range []string{"rolled", "never"} {
				r.secret(name, map[string]string{"password": "one"})
				r.deploy(name, auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, name) })
			}
			r.start("--sync-after-restart")
			r.rolls("rolled", func() { r.secret("rolled", map[string]string{"password": "two"}) })
			r.stop()
			for _, part := range tt.lost {
				testkit.Must(t, os.RemoveAll(filepath.Join(r.dir, "state", part)))
			}
			// The resourceVersions are others when it starts again, and the contents are not.
			r.label("rolled")
			r.label("never")
			before := r.writes("never")
			r.leaves("rolled", func() { r.start("--sync-after-restart") })
			if now := r.writes("never"); now != before {
				t.Errorf("never was rolled %d times, want none", now-before)
			}
			r.rolls("never", func() { r.secret("never", map[string]string{"password": "two"}) })
		})
	}
}

func TestAChangeMadeWhileItIsDownIsFoundAtTheStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.deploy("web", auto(), readDB)
	r.start()
	testkit.Await(t, "what web has is recorded", func(ctx context.Context) bool {
		web, err := r.client.AppsV1().Deployments(r.namespace).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && web.Annotations["keyturn.dev/rolled"] != ""
	})
	r.stop()
	r.secret("db", map[string]string{"password": "two"})
	r.rolls("web", func() { r.start() })
}

// TestTheRecordsOfWorkloadsStandForALostState keeps the key, under which the records were made.
func TestTheRecordsOfWorkloadsStandForALostState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := filepath.Join(r.dir, "key")
	testkit.Must(t, os.WriteFile(key, []byte("cmVwbGFjZSB0aGlzIGtleSBieSBvbmUgb2YgeW91ciBvd24h\n"), 0o600))
	for _, name := range []string{"changed", "same"} {
		r.secret(name, map[string]string{"password": "one"})
		r.deploy(name, auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, name) })
	}
	r.start("--fingerprint-key-file", key)
	for _, name := range []string{"changed", "same"} {
		r.rolls(name, func() { r.secret(name, map[string]string{"password": "two"}) })
	}
	r.stop()
	testkit.Must(t, os.RemoveAll(filepath.Join(r.dir, "state")))
	r.secret("changed", map[string]string{"password": "three"})
	r.label("same")
	before := r.writes("changed")
	r.leaves("same", func() { r.start("--fingerprint-key-file", key) })
	if rolled := r.writes("changed") - before; rolled != 1 {
		t.Errorf("changed was rolled %d times, want once", rolled)
	}
}

func TestAStateOfAnotherProcessIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	dir := filepath.Join(r.dir, "state")
	out, err := exec.CommandContext(t.Context(), command.Binary(), "reloader", "--state-dir", dir).CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("got %v, want exit code 1", err)
	}
	want := "error: --state-dir: lock " + dir + ": another process uses the directory, want a directory of its own that this program may write to"
	if got := strings.TrimSpace(string(out)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.program.Kill()
	r.start() // A process that is killed leaves no lock.
}
