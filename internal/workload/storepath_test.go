package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

func TestReferencesToASecretStore(t *testing.T) {
	const vault = "vault.hashicorp.com/agent-inject"
	tests := []struct {
		name        string
		annotations map[string]string
		env, want   []string
	}{
		{
			name: "the agent is injected for whatever the injector takes for true",
			annotations: map[string]string{
				vault: "True", vault + "-secret-db": "secret/data/shop/db",
				"openbao.org/agent-inject": "1", "openbao.org/agent-inject-secret-mail": "/secret/data/shop/mail/",
				"vault.example.org/agent-inject": "true", "vault.example.org/agent-inject-secret-a": "secret/data/a",
			},
			want: []string{"secret/data/shop/db", "secret/data/shop/mail"},
		},
		{
			name: "a template of the agent is read, and what is named twice is one",
			annotations: map[string]string{
				vault: "true", vault + "-secret-db": "secret/data/shop/db",
				vault + "-template-db": `{{- with secret "secret/data/shop/db" -}}{{ with secret "secret/data/shop/mail" "a=b" }}{{ end }}{{ end }}`,
			},
			want: []string{"secret/data/shop/db", "secret/data/shop/mail"},
		},
		{
			name:        "the namespace of the agent is put in front",
			annotations: map[string]string{vault: "true", "vault.hashicorp.com/namespace": "team-a/", vault + "-secret-db": "secret/data/shop/db"},
			want:        []string{"team-a/secret/data/shop/db"},
		},
		{
			name:        "a version that is named stays as it is",
			annotations: map[string]string{vault: "true", vault + "-secret-db": "secret/data/shop/db?version=3"},
			env:         []string{"vault:secret/data/shop/mail#password#2"},
		},
		{
			name: "variables of Bank-Vaults are read in each of their forms",
			env: []string{
				"vault:secret/data/shop/db#password", ">>vault:pki/issue/app#certificate", "bao:secret/data/shop/queue#token",
				"amqp://${vault:secret/data/shop/user#name}:${vault:secret/data/shop/mail#password}@mail", "vault", "plain",
			},
			want: []string{"pki/issue/app", "secret/data/shop/db", "secret/data/shop/mail", "secret/data/shop/queue", "secret/data/shop/user"},
		},
		{
			name:        "paths that are read into the environment as a whole are read",
			annotations: map[string]string{"vault.security.banzaicloud.io/vault-env-from-path": "secret/data/shop/db, secret/data/shop/mail#3,secret/data/shop/queue#,"},
			want:        []string{"secret/data/shop/db", "secret/data/shop/queue"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations}}
			var env []corev1.EnvVar
			for _, value := range tt.env {
				env = append(env, corev1.EnvVar{Name: "A", Value: value})
			}
			template.Spec.Containers = []corev1.Container{{Env: env}}
			var got []string
			for _, ref := range references(&template) {
				if ref.Kind != events.KindOpenBao || ref.Keys != nil || ref.Optional {
					t.Errorf("reference %+v is not to all of a secret in a store", ref)
				}
				got = append(got, ref.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
		})
	}
}
