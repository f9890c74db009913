package reloader

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

func TestTheKeyOfAnAnnotationIsThatOfItsFlag(t *testing.T) {
	r := newRig(t)
	for name, annotations := range map[string]map[string]string{
		"named":   {"example.com/reload": "true"},
		"default": {"reloader.stakater.com/auto": "true"},
	} {
		r.secret(name, map[string]string{"password": "one"})
		r.deploy(name, annotations, func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, name) })
	}
	r.start("--auto-annotation", "example.com/reload")
	before := r.writes("default")
	r.secret("default", map[string]string{"password": "two"})
	r.rolls("named", func() { r.secret("named", map[string]string{"password": "two"}) })
	if now := r.writes("default"); now != before {
		t.Errorf("default was rolled %d times, want none", now-before)
	}
}
