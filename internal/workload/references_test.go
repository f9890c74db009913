package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/events"
)

// referenceTest reads the references of one pod spec, which is YAML.
type referenceTest struct {
	name string
	spec string
	want []Reference
}

func runReferenceTests(t *testing.T, tests []referenceTest) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := references(&corev1.PodTemplateSpec{Spec: *podSpec(t, tt.spec)})
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

// secret is a reference to keys of a Secret, or to all. They are required, unless the test says otherwise.
func secret(name string, keys ...string) Reference {
	return Reference{Kind: events.KindSecret, Name: name, Keys: keys, Required: keys}
}

// configMap is like secret, for a ConfigMap.
func configMap(name string, keys ...string) Reference {
	return Reference{Kind: events.KindConfigMap, Name: name, Keys: keys, Required: keys}
}

func requires(r Reference, keys ...string) Reference { r.Required = keys; return r }

func optional(r Reference) Reference { r.Optional, r.Required = true, nil; return r }

func pulled(r Reference) Reference { r.ByPull = true; return r }

// podSpec reads a pod spec from YAML, and fails the test if that has unknown fields.
func podSpec(t testing.TB, text string) *corev1.PodSpec {
	t.Helper()
	var spec corev1.PodSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(fmt.Errorf("pod spec of the test: %w", err))
	}
	return &spec
}

func TestReferences(t *testing.T) {
	runReferenceTests(t, []referenceTest{
		{
			name: "env reads the key that it names",
			spec: `
containers:
- name: app
  env:
  - {name: A, valueFrom: {secretKeyRef: {name: db, key: password}}}
  - {name: B, valueFrom: {configMapKeyRef: {name: app, key: level}}}`,
			want: []Reference{configMap("app", "level"), secret("db", "password")},
		},
		{
			name: "volumes of the Secrets Store CSI driver read all of a SecretProviderClass",
			spec: `
containers: [{name: app}]
volumes:
- {name: a, csi: {driver: secrets-store.csi.k8s.io, volumeAttributes: {secretProviderClass: db}, nodePublishSecretRef: {name: vault}}}
- {name: b, csi: {driver: secrets-store.csi.k8s.io}}
- {name: c, csi: {driver: csi.example.com, volumeAttributes: {secretProviderClass: other}}}`,
			want: []Reference{secret("vault"), {Kind: events.KindSecretProviderClass, Name: "db"}},
		},
		{name: "a pull is a reference by pull", spec: `{containers: [{name: app}], imagePullSecrets: [{name: a}, {name: a}]}`, want: []Reference{pulled(secret("a"))}},
		{
			name: "keys of several uses are joined, in order and once",
			spec: `
initContainers:
- {name: init, env: [{name: A, valueFrom: {secretKeyRef: {name: db, key: user}}}]}
containers:
- name: app
  env:
  - {name: A, valueFrom: {secretKeyRef: {name: db, key: user}}}
  - {name: B, valueFrom: {secretKeyRef: {name: db, key: password}}}
  volumeMounts: [{name: s, mountPath: /ca, subPath: ca}]
volumes: [{name: s, secret: {secretName: db}}]`,
			want: []Reference{requires(secret("db", "ca", "password", "user"), "password", "user")},
		},
		{
			name: "one use that needs the source makes it required, whether it comes last",
			spec: `
containers:
- name: app
  env:
  - {name: A, valueFrom: {secretKeyRef: {name: db, key: a, optional: true}}}
  - {name: B, valueFrom: {secretKeyRef: {name: db, key: b}}}`,
			want: []Reference{requires(secret("db", "a", "b"), "b")},
		},
	})
}

func TestOnlySoManyReferencesCount(t *testing.T) {
	for _, test := range []struct{ secrets, want, problems int }{
		{secrets: maxReferences - 2, want: maxReferences - 1},
		{secrets: maxReferences - 1, want: maxReferences, problems: 1},
		{secrets: 50_000, want: maxReferences, problems: 1},
	} {
		var value strings.Builder
		for i := range test.secrets {
			fmt.Fprintf(&value, "${vault:kv/%d}", i)
		}
		deployment := webDeployment("50", nil)
		deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "secrets", Value: value.String()}}
		w, _ := Read(deployments, deployment, Reading{})
		if len(w.Refs) != test.want || cap(w.Refs) > 2*maxReferences || len(w.Problems) != test.problems {
			t.Errorf("of %d secrets and db %d count, want %d; problems: %v", test.secrets, len(w.Refs), test.want, w.Problems)
		}
	}
}
