package reloader

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

// quiet is how long Reloader's own tests wait for a roll that must not happen.
const quiet = 3 * time.Second

func TestADeploymentRollsAfterWhatItReads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.configMap("app", map[string]string{"colour": "red"})
	r.secret("other", map[string]string{"password": "one"})
	r.deploy("web", auto(), func(template *corev1.PodTemplateSpec) {
		programs.ReadSecret(template, "db")
		programs.ReadConfigMap(template, "app")
	})
	r.start("--reload-strategy", "annotations")

	r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
	r.rolls("web", func() { r.configMap("app", map[string]string{"colour": "green"}) })
	before := r.writes("web")
	r.leaves("web", func() {
		r.label("db")
		r.labelConfigMap("app")
		r.secret("other", map[string]string{"password": "two"})
	})
	<-time.After(quiet) // Here alone: everywhere else the sentinels show that nothing is left to do.
	if now := r.writes("web"); now != before {
		t.Errorf("web was rolled %d times, want none", now-before)
	}
}
