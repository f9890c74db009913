package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
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
			got := References(&corev1.PodTemplateSpec{Spec: *podSpec(t, tt.spec)})
			testkit.WantEqual(t, "references", tt.want, got)
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

// TestReferencesSeesEveryField finds every field of a pod spec that names a Secret or ConfigMap by its type, so that a
// field which a later Kubernetes adds is not overlooked.
func TestReferencesSeesEveryField(t *testing.T) {
	var paths []string
	spec := reflect.TypeFor[corev1.PodSpec]()
	visitNames(spec, nil, func(path []int, text string) {
		paths = append(paths, text)
		value := reflect.New(spec)
		setName(value.Elem(), path)
		got := References(&corev1.PodTemplateSpec{Spec: *value.Interface().(*corev1.PodSpec)})
		if len(got) != 1 || got[0].Name != "found" {
			t.Errorf("with %s: references %v, want the one", text, got)
		}
	})
	// Three sorts of containers with four references each, two volumes, two projected ones, nine drivers and the pulls.
	if len(paths) < 26 {
		t.Errorf("visited only %d fields: %s", len(paths), strings.Join(paths, " "))
	}
}

// visitNames calls visit with each path of fields that leads to the name of a Secret or ConfigMap.
func visitNames(typ reflect.Type, path []int, visit func(path []int, text string), names ...string) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
		return
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		path, names := append(slices.Clone(path), i), append(slices.Clone(names), field.Name)
		local := typ == reflect.TypeFor[corev1.LocalObjectReference]() && field.Name == "Name"
		if local || field.Name == "SecretName" {
			visit(path, strings.Join(names, "."))
			continue
		}
		visitNames(field.Type, path, visit, names...)
	}
}

// setName sets the field at the path to "found", and creates what is missing on the path.
func setName(value reflect.Value, path []int) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		setName(value.Elem(), path)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		setName(value.Index(0), path)
	case reflect.String:
		value.SetString("found")
	default:
		setName(value.Field(path[0]), path[1:])
	}
}

func FuzzReferences(f *testing.F) {
	for _, seed := range []string{
		`{}`,
		`{"containers":[{"name":"a","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"db","key":"k","optional":true}}}]}]}`,
		`{"containers":[{"name":"a","envFrom":[{"configMapRef":{"name":"c"}},{"secretRef":{"name":"s"}}]},{"name":"b"}]}`,
		`{"containers":[{"name":"a","volumeMounts":[{"name":"v","subPath":"a/b"}]},{"name":"b","volumeMounts":[{"name":"v","subPathExpr":"$(X)"}]}],
		  "volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"s","items":[{"key":"k","path":"a/b"}]}}]}}]}`,
		`{"volumes":[{"name":"v","csi":{"nodePublishSecretRef":{"name":"n"}}},{"name":"v","azureFile":{"secretName":"z"}}],"imagePullSecrets":[{"name":"p"}]}`,
		`{"volumes":[{"name":"v","csi":{"driver":"secrets-store.csi.k8s.io","volumeAttributes":{"secretProviderClass":"db"}}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var spec corev1.PodSpec
		if json.Unmarshal(data, &spec) != nil {
			t.Skip("not a pod spec")
		}
		before, _ := json.Marshal(spec)
		refs := References(&corev1.PodTemplateSpec{Spec: spec})
		if after, _ := json.Marshal(spec); !bytes.Equal(before, after) {
			t.Error("References changed the pod spec")
		}
		for i, ref := range refs {
			if ref.Name == "" || !slices.Contains(events.SourceKinds(), ref.Kind) {
				t.Errorf("%+v refers to nothing", ref)
			}
			if i > 0 && string(refs[i-1].Kind)+"/"+refs[i-1].Name >= string(ref.Kind)+"/"+ref.Name {
				t.Errorf("%+v does not come after %+v", ref, refs[i-1])
			}
			for _, keys := range [][]string{ref.Keys, ref.Required} {
				if keys != nil && (len(keys) == 0 || !slices.IsSorted(keys) || len(slices.Compact(slices.Clone(keys))) != len(keys)) {
					t.Errorf("keys %q of %s are not sorted, unique and some", keys, ref.Name)
				}
			}
			if ref.ByPull && (ref.Optional || ref.Keys != nil || ref.Required != nil || ref.Kind != events.KindSecret) {
				t.Errorf("%+v is by pull and something else", ref)
			}
			if ref.Optional && ref.Required != nil {
				t.Errorf("%+v is optional, and requires keys", ref)
			}
		}
		// What is read does not depend on the order in which it is written.
		slices.Reverse(spec.Containers)
		slices.Reverse(spec.InitContainers)
		slices.Reverse(spec.ImagePullSecrets)
		if diff := cmp.Diff(refs, References(&corev1.PodTemplateSpec{Spec: spec})); diff != "" {
			t.Errorf("in another order (-first +second):\n%s", diff)
		}
	})
}
