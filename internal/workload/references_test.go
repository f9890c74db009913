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
)

func TestReferences(t *testing.T) {
	// A key is required, unless the test says otherwise.
	secret := func(name string, keys ...string) Reference {
		return Reference{Kind: events.KindSecret, Name: name, Keys: keys, Required: keys}
	}
	configMap := func(name string, keys ...string) Reference {
		return Reference{Kind: events.KindConfigMap, Name: name, Keys: keys, Required: keys}
	}
	requires := func(r Reference, keys ...string) Reference { r.Required = keys; return r }
	optional := func(r Reference) Reference { r.Optional, r.Required = true, nil; return r }
	pulled := func(r Reference) Reference { r.ByPull = true; return r }

	tests := []struct {
		name string
		spec string
		want []Reference
	}{
		{
			name: "a spec without references has none",
			spec: `containers: [{name: app, env: [{name: A, value: b}, {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}]`,
		},
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
			name: "a key that is optional in env makes the source optional",
			spec: `
containers:
- name: app
  env:
  - {name: A, valueFrom: {secretKeyRef: {name: db, key: password, optional: true}}}
  - {name: B, valueFrom: {configMapKeyRef: {name: app, key: level, optional: true}}}`,
			want: []Reference{optional(configMap("app", "level")), optional(secret("db", "password"))},
		},
		{
			name: "envFrom reads all keys, with a prefix and without",
			spec: `
containers:
- name: app
  envFrom:
  - {secretRef: {name: db}}
  - {prefix: APP_, configMapRef: {name: app}}`,
			want: []Reference{configMap("app"), secret("db")},
		},
		{
			name: "envFrom can be optional",
			spec: `
containers:
- name: app
  envFrom:
  - {secretRef: {name: db, optional: true}}
  - {configMapRef: {name: app, optional: true}}`,
			want: []Reference{optional(configMap("app")), optional(secret("db"))},
		},
		{
			name: "init and ephemeral containers count like others",
			spec: `
initContainers:
- {name: migrate, envFrom: [{secretRef: {name: admin}}]}
containers:
- {name: app}
ephemeralContainers:
- name: debug
  env: [{name: A, valueFrom: {configMapKeyRef: {name: tools, key: shell}}}]`,
			want: []Reference{configMap("tools", "shell"), secret("admin")},
		},
		{
			name: "volumes without items read all keys",
			spec: `
containers:
- name: app
  volumeMounts: [{name: s, mountPath: /s}, {name: c, mountPath: /c}]
volumes:
- {name: s, secret: {secretName: db}}
- {name: c, configMap: {name: app}}`,
			want: []Reference{configMap("app"), secret("db")},
		},
		{
			name: "an empty list of items reads all keys",
			spec: `
containers: [{name: app, volumeMounts: [{name: s, mountPath: /s}]}]
volumes: [{name: s, secret: {secretName: db, items: []}}]`,
			want: []Reference{secret("db")},
		},
		{
			name: "volumes with items read these keys, in order",
			spec: `
containers:
- name: app
  volumeMounts: [{name: s, mountPath: /s}, {name: c, mountPath: /c}]
volumes:
- {name: s, secret: {secretName: tls, items: [{key: tls.key, path: key}, {key: tls.crt, path: crt}]}}
- {name: c, configMap: {name: app, items: [{key: level, path: level}]}}`,
			want: []Reference{configMap("app", "level"), secret("tls", "tls.crt", "tls.key")},
		},
		{
			name: "volumes can be optional",
			spec: `
containers: [{name: app}]
volumes:
- {name: s, secret: {secretName: db, optional: true}}
- {name: c, configMap: {name: app, optional: true}}`,
			want: []Reference{optional(configMap("app")), optional(secret("db"))},
		},
		{
			name: "a volume that no container mounts is read like one that is",
			spec: `
containers: [{name: app}]
volumes:
- {name: s, secret: {secretName: db}}
- {name: c, configMap: {name: app, items: [{key: level, path: level}]}}`,
			want: []Reference{configMap("app", "level"), secret("db")},
		},
		{
			name: "a projected volume reads each of its sources",
			spec: `
containers: [{name: app, volumeMounts: [{name: all, mountPath: /all}]}]
volumes:
- name: all
  projected:
    sources:
    - {secret: {name: db}}
    - {secret: {name: tls, items: [{key: tls.crt, path: crt}]}}
    - {configMap: {name: app, optional: true}}
    - {configMap: {name: ca, items: [{key: ca.crt, path: ca}]}}
    - {serviceAccountToken: {path: token}}
    - {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}`,
			want: []Reference{optional(configMap("app")), configMap("ca", "ca.crt"), secret("db"), secret("tls", "tls.crt")},
		},
		{
			name: "a subPath names the key of a volume without items",
			spec: `
containers:
- name: app
  volumeMounts:
  - {name: s, mountPath: /s/password, subPath: password}
  - {name: c, mountPath: /c/app.conf, subPath: ./app.conf}
volumes:
- {name: s, secret: {secretName: db}}
- {name: c, configMap: {name: app}}`,
			want: []Reference{requires(configMap("app", "app.conf")), requires(secret("db", "password"))},
		},
		{
			name: "the subPaths of all containers count",
			spec: `
initContainers: [{name: init, volumeMounts: [{name: s, mountPath: /a, subPath: a}]}]
containers: [{name: app, volumeMounts: [{name: s, mountPath: /b, subPath: b}]}]
ephemeralContainers: [{name: debug, volumeMounts: [{name: s, mountPath: /c, subPath: c}]}]
volumes: [{name: s, secret: {secretName: db}}]`,
			want: []Reference{requires(secret("db", "a", "b", "c"))},
		},
		{
			name: "one mount without a subPath reads all keys",
			spec: `
containers:
- {name: app, volumeMounts: [{name: s, mountPath: /a, subPath: a}]}
- {name: sidecar, volumeMounts: [{name: s, mountPath: /s}]}
volumes: [{name: s, secret: {secretName: db}}]`,
			want: []Reference{secret("db")},
		},
		{
			name: "a subPath that is not known before the pod runs reads all keys",
			spec: `
containers:
- name: app
  volumeMounts: [{name: s, mountPath: /a, subPath: a}, {name: s, mountPath: /b, subPathExpr: $(POD_NAME)}]
volumes: [{name: s, secret: {secretName: db}}]`,
			want: []Reference{secret("db")},
		},
		{
			name: "a subPath of the whole volume reads all keys",
			spec: `
containers: [{name: app, volumeMounts: [{name: s, mountPath: /a, subPath: a}, {name: s, mountPath: /b, subPath: ./}]}]
volumes: [{name: s, secret: {secretName: db}}]`,
			want: []Reference{secret("db")},
		},
		{
			name: "a subPath through the links of the kubelet reads all keys",
			spec: `
containers: [{name: app, volumeMounts: [{name: s, mountPath: /a, subPath: ..data/a}]}]
volumes: [{name: s, secret: {secretName: db}}]`,
			want: []Reference{secret("db")},
		},
		{
			name: "a subPath is the path of an item where there are items",
			spec: `
containers: [{name: app, volumeMounts: [{name: s, mountPath: /crt, subPath: certs/crt}]}]
volumes:
- name: s
  secret: {secretName: tls, items: [{key: tls.crt, path: certs/crt}, {key: tls.key, path: certs/key}]}`,
			want: []Reference{requires(secret("tls", "tls.crt"), "tls.crt", "tls.key")},
		},
		{
			name: "a subPath that is a folder reads the items in it",
			spec: `
containers: [{name: app, volumeMounts: [{name: s, mountPath: /certs, subPath: certs/}]}]
volumes:
- name: s
  secret:
    secretName: tls
    items: [{key: tls.crt, path: certs/crt}, {key: tls.key, path: certs/key}, {key: ca, path: certs-ca}]`,
			want: []Reference{requires(secret("tls", "tls.crt", "tls.key"), "ca", "tls.crt", "tls.key")},
		},
		{
			name: "a subPath that reaches no item reads all items",
			spec: `
containers: [{name: app, volumeMounts: [{name: s, mountPath: /x, subPath: elsewhere}]}]
volumes: [{name: s, secret: {secretName: tls, items: [{key: tls.crt, path: crt}, {key: tls.key, path: key}]}}]`,
			want: []Reference{secret("tls", "tls.crt", "tls.key")},
		},
		{
			name: "a subPath of a projected volume reads the items that it reaches",
			spec: `
containers: [{name: app, volumeMounts: [{name: all, mountPath: /crt, subPath: crt}]}]
volumes:
- name: all
  projected:
    sources:
    - {secret: {name: tls, items: [{key: tls.crt, path: crt}, {key: tls.key, path: key}]}}
    - {configMap: {name: app}}`,
			want: []Reference{requires(configMap("app", "crt")), requires(secret("tls", "tls.crt"), "tls.crt", "tls.key")},
		},
		{
			name: "the subPaths of one volume say nothing of another",
			spec: `
containers: [{name: app, volumeMounts: [{name: a, mountPath: /a, subPath: a}, {name: b, mountPath: /b}]}]
volumes: [{name: a, secret: {secretName: a}}, {name: b, secret: {secretName: b}}]`,
			want: []Reference{requires(secret("a", "a")), secret("b")},
		},
		{
			name: "drivers of volumes read their secrets",
			spec: `
containers: [{name: app}]
volumes:
- {name: a, azureFile: {secretName: azure, shareName: s}}
- {name: b, cephfs: {monitors: [m], secretRef: {name: ceph}}}
- {name: c, cinder: {volumeID: v, secretRef: {name: cinder}}}
- {name: d, flexVolume: {driver: d, secretRef: {name: flex}}}
- {name: e, iscsi: {targetPortal: t, iqn: i, lun: 0, secretRef: {name: iscsi}}}
- {name: f, rbd: {monitors: [m], image: i, secretRef: {name: rbd}}}
- {name: g, scaleIO: {gateway: g, system: s, secretRef: {name: scaleio}}}
- {name: h, storageos: {secretRef: {name: storageos}}}
- {name: i, csi: {driver: d, nodePublishSecretRef: {name: csi}}}`,
			want: []Reference{
				secret("azure"), secret("ceph"), secret("cinder"), secret("csi"), secret("flex"), secret("iscsi"),
				secret("rbd"), secret("scaleio"), secret("storageos"),
			},
		},
		{
			name: "drivers of volumes need no secret",
			spec: `
containers: [{name: app}]
volumes: [{name: i, csi: {driver: d}}, {name: f, rbd: {monitors: [m], image: i}}, {name: e, emptyDir: {}}]`,
		},
		{
			name: "imagePullSecrets are references by pull",
			spec: `{containers: [{name: app}], imagePullSecrets: [{name: registry}, {name: registry}]}`,
			want: []Reference{pulled(secret("registry"))},
		},
		{
			name: "a pull adds nothing to another use",
			spec: `
containers: [{name: app, env: [{name: A, valueFrom: {secretKeyRef: {name: registry, key: user, optional: true}}}]}]
imagePullSecrets: [{name: registry}]`,
			want: []Reference{optional(secret("registry", "user"))},
		},
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
			name: "one use of all keys is a use of all keys, whether it comes last",
			spec: `
containers:
- name: app
  env: [{name: A, valueFrom: {secretKeyRef: {name: db, key: user}}}]
  envFrom: [{secretRef: {name: db}}]`,
			want: []Reference{requires(secret("db"), "user")},
		},
		{
			name: "or first",
			spec: `
initContainers: [{name: init, envFrom: [{secretRef: {name: db}}]}]
containers: [{name: app, env: [{name: A, valueFrom: {secretKeyRef: {name: db, key: user}}}]}]`,
			want: []Reference{requires(secret("db"), "user")},
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
		{
			name: "or first as well",
			spec: `
containers:
- name: app
  env:
  - {name: A, valueFrom: {secretKeyRef: {name: db, key: a, optional: false}}}
  - {name: B, valueFrom: {secretKeyRef: {name: db, key: b, optional: true}}}`,
			want: []Reference{requires(secret("db", "a", "b"), "a")},
		},
		{
			name: "a Secret and a ConfigMap of one name are two sources",
			spec: `containers: [{name: app, envFrom: [{secretRef: {name: app}}, {configMapRef: {name: app}}]}]`,
			want: []Reference{configMap("app"), secret("app")},
		},
		{
			name: "a reference without a name is none",
			spec: `
containers: [{name: app, envFrom: [{secretRef: {name: ""}}]}]
volumes: [{name: s, secret: {optional: true}}]
imagePullSecrets: [{name: ""}]`,
		},
	}
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

func TestReferencesOfAnEmptyTemplate(t *testing.T) {
	if got := references(&corev1.PodTemplateSpec{}); len(got) != 0 {
		t.Errorf("references of an empty template: %v, want none", got)
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
		got := references(&corev1.PodTemplateSpec{Spec: *value.Interface().(*corev1.PodSpec)})
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

// setName sets the field at the path to "found", and makes what is on the way.
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
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var spec corev1.PodSpec
		if json.Unmarshal(data, &spec) != nil {
			t.Skip("not a pod spec")
		}
		before, _ := json.Marshal(spec)
		refs := references(&corev1.PodTemplateSpec{Spec: spec})
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
		if diff := cmp.Diff(refs, references(&corev1.PodTemplateSpec{Spec: spec})); diff != "" {
			t.Errorf("in another order (-first +second):\n%s", diff)
		}
	})
}

func BenchmarkReferences(b *testing.B) {
	spec := podSpec(b, `
initContainers:
- {name: migrate, envFrom: [{secretRef: {name: db}}]}
containers:
- name: app
  env:
  - {name: A, valueFrom: {secretKeyRef: {name: db, key: user}}}
  - {name: B, valueFrom: {secretKeyRef: {name: db, key: password}}}
  - {name: C, value: c}
  envFrom: [{configMapRef: {name: app}}]
  volumeMounts: [{name: tls, mountPath: /tls}, {name: conf, mountPath: /app.conf, subPath: app.conf}]
- name: proxy
  volumeMounts: [{name: tls, mountPath: /tls}]
volumes:
- {name: tls, secret: {secretName: tls, items: [{key: tls.crt, path: crt}, {key: tls.key, path: key}]}}
- {name: conf, configMap: {name: conf}}
- {name: all, projected: {sources: [{secret: {name: token}}, {configMap: {name: ca}}]}}
imagePullSecrets: [{name: registry}]`)
	template := &corev1.PodTemplateSpec{Spec: *spec}
	b.ReportAllocs()
	for b.Loop() {
		if len(references(template)) != 7 {
			b.Fatal("not seven references")
		}
	}
}

// podSpec reads a pod spec from YAML, and fails the test where it has unknown fields.
func podSpec(t testing.TB, text string) *corev1.PodSpec {
	t.Helper()
	var spec corev1.PodSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(fmt.Errorf("pod spec of the test: %w", err))
	}
	return &spec
}
