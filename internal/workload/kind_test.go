package workload

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// canaries are workloads of a custom resource, whose pods are replaced by a field of their spec.
var canaries = Kind{
	Name: "canary", APIVersion: "example.org/v1", Title: "Canary", Resource: "canaries", Example: &unstructured.Unstructured{},
	client: func(_ Clients, namespace string) Objects { return canaryObjects(namespace) },
	read: func(obj runtime.Object) (parts, bool) {
		object, ok := obj.(*unstructured.Unstructured)
		if !ok || object.GetKind() != "Canary" {
			return parts{}, false
		}
		var template corev1.PodTemplateSpec
		raw, _, _ := unstructured.NestedMap(object.Object, "spec", "workload", "template")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &template); err != nil {
			return parts{}, false
		}
		meta := metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), Annotations: object.GetAnnotations()}
		return parts{meta: &meta, template: &template, progress: Progress{State: Progressing, Pods: 1}}, true
	},
	template: "/spec/workload/template",
	strategy: strategy{
		change: func(_ *Workload, template string, m mark) []operation {
			return []operation{add(template+"/spec/hostname", m.revision)}
		},
		revision: func(p parts) string { return p.template.Spec.Hostname },
	},
}

// canaryObjects are the canaries of a namespace, which get applies a patch to.
type canaryObjects string

func (o canaryObjects) Get(_ context.Context, name string) (runtime.Object, error) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Canary"}}
	object.SetNamespace(string(o))
	object.SetName(name)
	object.SetUID(types.UID("u"))
	object.SetAnnotations(rollOn("auto"))
	return object, nil
}

func (o canaryObjects) List(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &unstructured.UnstructuredList{}, nil
}

func (o canaryObjects) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func (o canaryObjects) Patch(ctx context.Context, name string, p Patch) (runtime.Object, error) {
	obj, err := o.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	object, _ := obj.(*unstructured.Unstructured)
	var operations []operation
	if err := json.Unmarshal(p.Body, &operations); err != nil {
		return nil, err
	}
	last := operations[len(operations)-1]
	return object, unstructured.SetNestedField(object.Object, last.Value, strings.Split(last.Path, "/")[1:]...)
}

func TestAKindIsAllThatDiffers(t *testing.T) {
	kinds := append(BuiltIn(), canaries)
	k, ok := kinds.Named("canary")
	if !ok {
		t.Fatal("the table does not have the kind")
	}
	objects := k.Objects(Clients{}, "shop")
	obj, err := objects.Get(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	before, ok := Read(k, obj, Reading{})
	if !ok || before.ID.Kind != "canary" || before.Revision != "" || before.OptIn.Empty() {
		t.Fatalf("read: %t, %+v", ok, before)
	}
	patch, err := k.Patch(before, Write{Rolls: true, Rolled: map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "1", UID: "u"}}})
	if err != nil {
		t.Fatal(err)
	}
	if obj, err = objects.Patch(t.Context(), "web", patch); err != nil {
		t.Fatal(err)
	}
	after, ok := Read(k, obj, Reading{})
	if !ok || after.Revision != patch.Revision || patch.Revision == "" || after.template == before.template {
		t.Errorf("after the patch: read %t, revision %q, want %q", ok, after.Revision, patch.Revision)
	}
}
