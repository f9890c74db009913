package reloader

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

func TestAStartRollsNothingThatHasNotChanged(t *testing.T) {
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
			r := newRig(t)
			for _, name := range []string{"rolled", "never"} {
				r.secret(name, map[string]string{"password": "one"})
				r.deploy(name, auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, name) })
			}
			r.start("--sync-after-restart")
			r.rolls("rolled", func() { r.secret("rolled", map[string]string{"password": "two"}) })
			r.stop()
			for _, part := range tt.lost {
				if err := os.RemoveAll(filepath.Join(r.dir, "state", part)); err != nil {
					t.Fatal(err)
				}
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
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.deploy("web", auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, "db") })
	r.start()
	r.stop()
	r.secret("db", map[string]string{"password": "two"})
	r.rolls("web", func() { r.start() })
}
