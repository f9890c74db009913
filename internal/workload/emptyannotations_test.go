package workload

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The API server keeps an empty object in a custom resource. It drops one in the kinds that it defines itself.
func TestACustomResourceIsRolledWhateverItsPodTemplateHasOfAnnotations(t *testing.T) {
	kinds := map[string]Kind{
		"a Rollout": ArgoRollout(),
		"a target":  targetKind(t, "  template: spec.template\n  trigger: {annotations: spec.template.metadata.annotations}\n"),
	}
	tests := []struct {
		name string
		// set sets the annotations in the metadata of the pod template, or of the object.
		set func(metadata map[string]any)
		// others are the existing annotations.
		others int
	}{
		{"none", func(metadata map[string]any) { delete(metadata, "annotations") }, 0},
		{"null", func(metadata map[string]any) { metadata["annotations"] = nil }, 0},
		{"an empty object", func(metadata map[string]any) { metadata["annotations"] = map[string]any{} }, 0},
		{"some", func(metadata map[string]any) { metadata["annotations"] = map[string]any{"example.org/a": "b"} }, 1},
	}
	for kind, k := range kinds {
		for _, ofPods := range tests {
			for _, ofObject := range tests {
				t.Run(kind+", with "+ofPods.name+", and itself with "+ofObject.name, func(t *testing.T) {
					template := map[string]any{"labels": map[string]any{"app": "web"}}
					pods := map[string]any{"metadata": template, "spec": map[string]any{"containers": []any{map[string]any{
						"name": "main", "envFrom": []any{map[string]any{"secretRef": map[string]any{"name": "db"}}},
					}}}}
					object := widgetOf("web", map[string]any{"template": pods}, nil)
					ofPods.set(template)
					meta, _ := object.Object["metadata"].(map[string]any)
					ofObject.set(meta)
					before := readTarget(t, k, object)
					p, err := k.Patch(before, roll("100"))
					if err != nil {
						t.Fatal(err)
					}
					after := patched(t, object, p)
					w := readTarget(t, k, after)
					if err := k.Accepted(w, p); err != nil || w.Rolled["secret/db"].Version != "100" {
						t.Errorf("it is rolled for %v at the revision %q: %v", w.Rolled, w.Revision, err)
					}
					kept, _, _ := unstructured.NestedStringMap(after.Object, "spec", "template", "metadata", "annotations")
					if got := len(kept) - 3; got != ofPods.others {
						t.Errorf("its pods have %v, want %d annotations of others", kept, ofPods.others)
					}
				})
			}
		}
	}
}
