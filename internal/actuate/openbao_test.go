package actuate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

func TestReferencesToASecretStore(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		env         []string
		want        []string
	}{
		{name: "a template without annotations reads nothing"},
		{
			name: "what an agent is to inject is read",
			annotations: map[string]string{
				"vault.hashicorp.com/agent-inject":           "true",
				"vault.hashicorp.com/agent-inject-secret-db": "secret/data/shop/db",
			},
			want: []string{"secret/data/shop/db"},
		},
		{
			name: "the annotations of OpenBao's injector are read as well",
			annotations: map[string]string{
				"openbao.org/agent-inject":           "true",
				"openbao.org/agent-inject-secret-db": "/database/creds/app/",
			},
			want: []string{"database/creds/app"},
		},
		{
			name:        "what is not to be injected is not read",
			annotations: map[string]string{"vault.hashicorp.com/agent-inject-secret-db": "secret/data/shop/db"},
		},
		{
			name: "a template of the agent is read, and what is named twice is one",
			annotations: map[string]string{
				"vault.hashicorp.com/agent-inject":             "true",
				"vault.hashicorp.com/agent-inject-secret-db":   "secret/data/shop/db",
				"vault.hashicorp.com/agent-inject-template-db": `{{- with secret "secret/data/shop/db" -}}{{ with secret "secret/data/shop/mail" "a=b" }}{{ end }}{{ end }}`,
			},
			want: []string{"secret/data/shop/db", "secret/data/shop/mail"},
		},
		{
			name: "the namespace of the agent is put in front",
			annotations: map[string]string{
				"vault.hashicorp.com/agent-inject":           "true",
				"vault.hashicorp.com/namespace":              "team-a/",
				"vault.hashicorp.com/agent-inject-secret-db": "secret/data/shop/db",
			},
			want: []string{"team-a/secret/data/shop/db"},
		},
		{
			name: "a version that is named stays as it is",
			annotations: map[string]string{
				"vault.hashicorp.com/agent-inject":           "true",
				"vault.hashicorp.com/agent-inject-secret-db": "secret/data/shop/db?version=3",
			},
			env: []string{"vault:secret/data/shop/mail#password#2"},
		},
		{
			name: "variables of Bank-Vaults are read in each of their forms",
			env: []string{
				"vault:secret/data/shop/db#password", ">>vault:pki/issue/app#certificate", "bao:secret/data/shop/queue#token",
				"amqp://${vault:secret/data/shop/user#name}:${vault:secret/data/shop/mail#password}@mail", "vault", "plain",
			},
			want: []string{
				"pki/issue/app", "secret/data/shop/db", "secret/data/shop/mail", "secret/data/shop/queue", "secret/data/shop/user",
			},
		},
		{
			name:        "paths that are read into the environment as a whole are read",
			annotations: map[string]string{"vault.security.banzaicloud.io/vault-from-path": "secret/data/shop/db, secret/data/shop/mail#3,"},
			want:        []string{"secret/data/shop/db", "secret/data/shop/mail"},
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
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIndexFindsWhatReadsASecretStore(t *testing.T) {
	db := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}
	inTeam := db
	inTeam.Namespace = "team-a"
	agent := func(path string) map[string]string {
		return map[string]string{"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/agent-inject-secret-a": path}
	}
	tests := []struct {
		name     string
		workload map[string]string
		template map[string]string
		rollAll  bool
		path     events.StorePath
		want     bool
	}{
		{name: "a path that roll-on names", workload: rollOn("openbao:secret/shop/db"), path: db, want: true},
		{name: "a path that roll-on names as the API does", workload: rollOn("openbao:secret/data/shop/db"), path: db, want: true},
		{name: "a path with a key", workload: rollOn("openbao:secret/shop/db#password"), path: db, want: true},
		{name: "another path", workload: rollOn("openbao:secret/shop/mail"), path: db},
		{name: "the path in another namespace", workload: rollOn("openbao:secret/shop/db"), path: inTeam},
		{name: "a path in a namespace", workload: rollOn("openbao:team-a/secret/shop/db"), path: inTeam, want: true},
		{name: "a pattern, whose star goes over slashes", workload: rollOn("openbao:secret/*"), path: db, want: true},
		{name: "a pattern of another mount", workload: rollOn("openbao:kv/*"), path: db},
		{name: "an exclusion from a pattern", workload: rollOn("openbao:secret/*, !openbao:secret/shop/db"), path: db},
		{name: "what an agent injects, with auto", workload: rollOn("auto"), template: agent("secret/data/shop/db"), path: db, want: true},
		{name: "what an agent injects, with openbao", workload: rollOn("openbao"), template: agent("secret/data/shop/db"), path: db, want: true},
		{name: "what an agent injects, with secrets", workload: rollOn("secrets"), template: agent("secret/data/shop/db"), path: db},
		{name: "what an agent injects, with Reloader's auto", workload: map[string]string{reloaderAuto: "true"}, template: agent("secret/data/shop/db"), path: db},
		{name: "what an agent injects, with all", rollAll: true, template: agent("secret/data/shop/db"), path: db, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := newIndex(tt.rollAll, func(workloadKey) {})
			w := &workload{id: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web", UID: "u"}, version: "1"}
			w.refs = References(&corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: tt.template}})
			w.optIn, w.problems = ParseOptIn(tt.workload, tt.template, tt.rollAll)
			if len(w.problems) > 0 {
				t.Fatal(w.problems)
			}
			x.observe(w, true)
			change := events.Change{
				Source: tt.path.Source(), Verb: events.VerbRotated, UID: "bao", ResourceVersion: "1794796013000000000",
				ChangedAt: "1794796013000000000", Fingerprint: "k0:7", Truncated: true,
			}
			rolls := false
			for _, dependent := range x.dependents(change.Source) {
				rolls = plan(dependent, change, nil).Reason == ReasonChanged
			}
			if rolls != tt.want {
				t.Errorf("rolls: %t, want %t", rolls, tt.want)
			}
			x.forget(w.key(), "u")
			if len(x.dependents(change.Source)) > 0 || len(x.bySource) > 0 || len(x.byPattern) > 0 {
				t.Error("the index keeps a workload that is gone")
			}
		})
	}
}
