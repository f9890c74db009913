package tests

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

func TestAWorkloadThatBankVaultsGivesASecretRolls(t *testing.T) {
	t.Parallel()
	s := newStoreRig(t, byHTTP, programs.Options{})
	s.put("shop/db", "one")
	s.put("shop/mail", "one")
	named := func(name string, env []corev1.EnvVar, annotations map[string]string) *appsv1.Deployment {
		d := programs.NewDeployment(s.namespace, name, 1, map[string]string{"keyturn.dev/roll-on": "auto"})
		d.Spec.Template.Annotations = annotations
		d.Spec.Template.Spec.Containers[0].Env = env
		return d
	}
	for _, d := range []*appsv1.Deployment{
		named("variable", []corev1.EnvVar{{Name: "PASSWORD", Value: "vault:secret/data/shop/db#password"}}, nil),
		named("inline", []corev1.EnvVar{{Name: "DSN", Value: "postgres://app:${vault:secret/data/shop/db#password}@db"}}, nil),
		named("path", nil, map[string]string{"vault.security.banzaicloud.io/vault-env-from-path": "secret/data/shop/db"}),
		named("newer-path", nil, map[string]string{"secrets-webhook.security.bank-vaults.io/vault-from-path": "secret/data/other, secret/data/shop/db"}),
		named("bao-path", nil, map[string]string{"secrets-webhook.security.bank-vaults.io/bao-from-path": "secret/data/shop/db"}),
		named("other", []corev1.EnvVar{{Name: "PASSWORD", Value: "vault:secret/data/shop/mail#password"}}, nil),
	} {
		s.deploy(d)
	}
	s.start()
	s.put("shop/db", "two")
	rolled := []string{"variable", "inline", "path", "newer-path", "bao-path"}
	for _, name := range rolled {
		s.awaitGeneration(name, 2)
	}
	s.put("shop/mail", "two")
	s.awaitGeneration("other", 2)
	for _, name := range rolled {
		if got := s.generations()[name]; got != 2 {
			t.Errorf("generation of %s after the change of another path: got %d, want 2", name, got)
		}
	}
}
