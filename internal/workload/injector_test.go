package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestWhatAnInjectorMountsIsReferenced(t *testing.T) {
	const webhook = "secrets-webhook.security.bank-vaults.io/"
	tests := []struct {
		name        string
		annotations map[string]string
		want        []Reference
	}{
		{
			name: "the configuration of an agent and the certificate of its store",
			annotations: map[string]string{
				"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/agent-configmap": "agent-config",
				"vault.hashicorp.com/tls-secret": "vault-ca", "vault.hashicorp.com/ca-cert": "/vault/tls/ca.crt",
			},
			want: []Reference{configMap("agent-config"), secret("vault-ca")},
		},
		{
			name: "a further Secret for an agent, in each fork of the injector",
			annotations: map[string]string{
				"vault.hashicorp.com/agent-inject": "1", "vault.hashicorp.com/agent-extra-secret": "extra",
				"openbao.openbao.org/agent-inject": "true", "openbao.openbao.org/agent-extra-secret": "more", "openbao.openbao.org/agent-configmap": "config",
				"openbao.org/agent-inject": "True", "openbao.org/tls-secret": "ca",
			},
			want: []Reference{configMap("config"), secret("ca"), secret("extra"), secret("more")},
		},
		{
			name: "none if no agent is injected, or the name is none",
			annotations: map[string]string{
				"vault.hashicorp.com/agent-inject": "false", "vault.hashicorp.com/agent-configmap": "agent-config",
				"openbao.openbao.org/tls-secret": "ca", "openbao.org/agent-inject": "true", "openbao.org/agent-configmap": "No Name",
			},
		},
		{
			name: "what the webhooks of Bank-Vaults mount",
			annotations: map[string]string{
				webhook + "vault-tls-secret": "vault-ca", webhook + "vault-agent-configmap": "agent", webhook + "bao-ct-configmap": "templates",
				"vault.security.banzaicloud.io/vault-ct-configmap": "old-templates", webhook + "vault-role": "app",
			},
			want: []Reference{configMap("agent"), configMap("old-templates"), configMap("templates"), secret("vault-ca")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := References(&corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations}})
			testkit.WantEqual(t, "references", tt.want, got, cmpopts.EquateEmpty())
		})
	}
}

// A key that the pods are seen to read is not all that the agent reads.
func TestAnAgentReadsAllOfItsConfiguration(t *testing.T) {
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/agent-configmap": "app",
		}},
		Spec: *podSpec(t, `{containers: [{name: app, env: [{name: A, valueFrom: {configMapKeyRef: {name: app, key: level}}}]}]}`),
	}
	want := []Reference{{Kind: events.KindConfigMap, Name: "app", Required: []string{"level"}}}
	testkit.WantEqual(t, "references", want, References(template))
}

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
				"openbao.openbao.org/agent-inject": "true", "openbao.openbao.org/agent-inject-secret-queue": "secret/data/shop/queue",
				"vault.example.org/agent-inject": "true", "vault.example.org/agent-inject-secret-a": "secret/data/a",
			},
			want: []string{"secret/data/shop/db", "secret/data/shop/mail", "secret/data/shop/queue"},
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
			name: "a path in a template is read in each quoting that a template may have",
			annotations: map[string]string{
				vault:                 "true",
				vault + "-template-a": "{{- with secret `secret/data/shop/backticks` -}}A={{ .Data.data.a }}{{- end }}",
				vault + "-template-b": "{{ with secret\n\t\"secret/data/shop/lines\" }}{{ end }}{{(secret (`secret/data/shop/brackets`)).Data.data.a}}",
				vault + "-template-c": `{{ with secret \"secret/data/shop/escaped\" }}{{ end }}{{ with secret "secret/data/shop/\u0061 \"b\"" }}{{ end }}`,
				vault + "-template-d": "{{- $cert := pkiCert `pki/issue/app` `common_name=app` }}{{ secret `secret/data/shop/last?version=2` }}",
			},
			want: []string{
				"pki/issue/app", `secret/data/shop/a "b"`, "secret/data/shop/backticks", "secret/data/shop/brackets", "secret/data/shop/escaped",
				"secret/data/shop/lines",
			},
		},
		{
			name: "what a template composes, lists or cannot quote is not known",
			annotations: map[string]string{
				vault: "true",
				vault + "-template-a": "{{ with secret (printf `secret/data/%s` .Env.APP) }}{{ end }}{{ with secret $path }}{{ end }}" +
					"{{ range secrets `secret/metadata/shop` }}{{ end }}{{ with secret 'secret/data/shop/db' }}{{ end }}" +
					"{{ secret `` }}{{ secret \"\\q\" }}",
				vault + "-template-file-b": "/vault/custom/app.tmpl",
			},
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
			for _, ref := range References(&template) {
				if ref.Kind != events.KindOpenBao || ref.Keys != nil || ref.Optional {
					t.Errorf("reference %+v is not to all of a secret in a store", ref)
				}
				got = append(got, ref.Name)
			}
			testkit.WantEqual(t, "paths", tt.want, got)
		})
	}
}
