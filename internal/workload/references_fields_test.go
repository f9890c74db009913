package workload

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
