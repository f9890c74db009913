package workload

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

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
