package chart

import (
	"fmt"
	"strings"
	"testing"
)

func TestAGroupThatTheActuatorRefusesIsRefused(t *testing.T) {
	const form = "targets: [{apiVersion: %s, kind: Widget, resource: widgets, trigger: {annotations: spec.a}}]"
	for _, version := range []string{
		"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1", "argoproj.io/v1alpha1", "external-secrets.io/v1",
		"example.org", "example.org/v1/v2", ".example.org/v1",
	} {
		if out, err := template(t, fmt.Sprintf(form, version)); err == nil || !strings.Contains(out, "/targets/0/apiVersion") {
			t.Errorf("%s: got %v and %.200s", version, err, out)
		}
	}
	for _, version := range []string{"example.org/v1", "monitoring.coreos.com/v1", "postgres-operator.crunchydata.com/v1beta1", "ak8s.io/v1"} {
		rendered(t, fmt.Sprintf(form, version))
	}
}
