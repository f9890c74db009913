package workload

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
)

// targetKind returns the kind that a configuration describes.
func targetKind(t testing.TB, rest string) Kind {
	t.Helper()
	kinds, err := parseTargets([]byte(widgets(rest)), "file", nil)
	if err != nil || len(kinds) != 1 {
		t.Fatalf("got %d kinds, %v", len(kinds), err)
	}
	return kinds[0]
}

// widgetOf is a custom resource in generation 2.
func widgetOf(name string, spec, status map[string]any) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{
			"name": name, "namespace": "shop", "uid": "uid-" + name, "resourceVersion": "10", "generation": int64(2),
			"annotations": map[string]any{AnnotationRollOn: "auto"},
			"managedFields": []any{map[string]any{
				"manager": "kubectl", "operation": "Update", "time": "2026-11-23T09:00:00Z", "apiVersion": "example.org/v1",
			}},
		},
	}
	if spec != nil {
		object["spec"] = spec
	}
	if status != nil {
		object["status"] = status
	}
	return &unstructured.Unstructured{Object: object}
}

// roll is a write for a change of secret/db at a resourceVersion.
func roll(version string) Write {
	return Write{
		Rolls: true, Rolled: map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: version, UID: "u"}}, Cause: "secret/db",
		Traceparent: "trace", Changes: []Change{{Source: db, At: time.Date(2026, 11, 23, 9, 5, 0, 1, time.UTC)}},
	}
}

// patched applies a patch as the API server does.
func patched(t testing.TB, object *unstructured.Unstructured, p Patch) *unstructured.Unstructured {
	t.Helper()
	after := &unstructured.Unstructured{}
	if err := p.apply(object, after); err != nil {
		t.Fatalf("%s: %v", p.Body, err)
	}
	entry := entryOf(FieldManager, `{"f:metadata":{"f:annotations":{"f:keyturn.dev/rolled":{}}}}`)
	entry.Time = nil
	after.SetManagedFields(append(after.GetManagedFields(), entry))
	return after
}

func TestATargetReadsWhatItsPathsName(t *testing.T) {
	k := targetKind(t, `  template: spec.template
  reads:
  - {kind: secret, path: "spec.secrets[*]"}
  - {kind: configmap, path: "spec.files[*]", name: name, key: key}
  - {kind: secret, path: spec.missing.name}
  ignores: ["secret/widget-{name}-*"]
`+annotates)
	object := widgetOf("web", map[string]any{
		"secrets": []any{"db", "tls", "widget-web-made", "", int64(4)},
		"files":   []any{map[string]any{"name": "app", "key": "b"}, map[string]any{"name": "app", "key": "a"}, map[string]any{"name": "all"}, "none"},
		"template": map[string]any{"spec": map[string]any{
			"imagePullSecrets": []any{map[string]any{"name": "registry"}, map[string]any{"name": "db"}},
			"containers":       []any{map[string]any{"name": "main", "envFrom": []any{map[string]any{"secretRef": map[string]any{"name": "env"}}}}},
		}},
	}, nil)
	w := readAs(t, k, object, Reading{})
	want := []Reference{
		{Kind: "configmap", Name: "all"},
		{Kind: "configmap", Name: "app", Keys: []string{"a", "b"}, Required: []string{"a", "b"}},
		{Kind: "secret", Name: "4"},
		{Kind: "secret", Name: "db"},
		{Kind: "secret", Name: "env"},
		{Kind: "secret", Name: "registry", ByPull: true},
		{Kind: "secret", Name: "tls"},
		{Kind: "secret", Name: "widget-web-made"},
	}
	if diff := cmp.Diff(want, w.Refs); diff != "" {
		t.Error(diff)
	}
	made := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "widget-web-made"}
	if got := w.OptIn.Wants(made, w.Reference(made), false); got.Wanted() || got.Reason != Excluded || got.Annotation != "--targets-config" {
		t.Errorf("what the configuration ignores: got %+v, want that it is excluded", got)
	}
	id := events.Workload{Kind: "widget", Namespace: "shop", Name: "web", UID: "uid-web", APIVersion: "example.org/v1", Resource: "widgets"}
	if w.ID != id {
		t.Errorf("what outcomes call it: got %+v, want %+v", w.ID, id)
	}
}

func TestATemplateThatIsNoneIsAProblemOfTheTarget(t *testing.T) {
	k := targetKind(t, "  template: spec.template\n"+annotates)
	w := readAs(t, k, widgetOf("web", map[string]any{"template": map[string]any{"spec": "s3cret"}}, nil), Reading{})
	if len(w.Problems) != 1 || strings.Contains(w.Problems[0].Error(), "s3cret") {
		t.Errorf("got the problems %v, want one that quotes nothing", w.Problems)
	}
}

func TestTheStatusOfATargetSaysHowFarItIs(t *testing.T) {
	const status = `  status:
    observedGeneration: status.observedGeneration
    observed: [{path: status.handled, equalsPath: spec.asked}, {path: spec.roll, missing: true}]
    done: [{path: 'status.conditions[?(@.type=="Ready")].status', equals: "True"}, {path: status.updated, equalsPath: spec.replicas}]
    failed: [{path: status.phase, equals: Failed}]
    waiting: [{path: spec.paused, equals: "true"}]
  replicas: spec.replicas
`
	k := targetKind(t, readsSecrets+annotates+status)
	ready := func(text string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": text}}, "updated": int64(3), "observedGeneration": int64(2)}
	}
	also := func(of map[string]any, name string, value any) map[string]any { of[name] = value; return of }
	tests := []struct {
		name         string
		spec, status map[string]any
		want         Progress
	}{
		{"an earlier generation", nil, also(ready("True"), "observedGeneration", int64(1)), Progress{Message: "the controller has not observed the change yet", Done: nothingDone}},
		{"old pods", nil, also(ready("True"), "updated", int64(2)), Progress{Message: "waiting until status.updated equals spec.replicas", Done: 1}},
		{"done", nil, ready("True"), Progress{State: Complete, Done: 2}},
		{"failed", nil, also(ready("True"), "phase", "Failed"), Progress{State: Failed, Message: `status.phase is "Failed"`, Done: 2}},
		{"paused", map[string]any{"paused": true}, ready("False"), Progress{State: Waiting, Message: `spec.paused is "true"`, Done: 1}},
		{"what it is to remove is there", map[string]any{"roll": "now"}, ready("True"), Progress{Message: "the controller has not observed the change yet", Done: nothingDone}},
		{"failed before it was asked", map[string]any{"asked": "b"}, also(also(ready("False"), "phase", "Failed"), "handled", "a"), Progress{Message: "the controller has not observed the change yet", Done: nothingDone}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := map[string]any{"replicas": int64(3)}
			maps.Copy(spec, tt.spec)
			tt.want.Pods = 3
			w := readAs(t, k, widgetOf("web", spec, tt.status), Reading{})
			if diff := cmp.Diff(tt.want, w.Progress); diff != "" {
				t.Error(diff)
			}
			if serving := w.ServingSince != ""; serving != (tt.want.State == Complete) {
				t.Errorf("it has pods of its template alone: got %t", serving)
			}
		})
	}
	silent := readAs(t, targetKind(t, readsSecrets+annotates), widgetOf("web", nil, nil), Reading{})
	if silent.Progress.State != Complete || silent.Progress.Message == "" || silent.ServingSince != "" {
		t.Errorf("one whose status says nothing: got %+v, want complete, and that nothing says more", silent.Progress)
	}
}

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
		{"an empty object", func(metadata map[string]any) { metadata["annotations"] = map[string]any{} }, 0},
		{"some", func(metadata map[string]any) { metadata["annotations"] = map[string]any{"example.org/a": "b"} }, 1},
	}
	for kind, k := range kinds {
		for _, ofPods := range tests {
			for _, ofObject := range tests[:2] {
				t.Run(kind+", with "+ofPods.name+", and itself with "+ofObject.name, func(t *testing.T) {
					template := map[string]any{"labels": map[string]any{"app": "web"}}
					pods := map[string]any{"metadata": template, "spec": map[string]any{"containers": []any{map[string]any{
						"name": "main", "envFrom": []any{map[string]any{"secretRef": map[string]any{"name": "db"}}},
					}}}}
					object := widgetOf("web", map[string]any{"template": pods}, nil)
					ofPods.set(template)
					meta, _ := object.Object["metadata"].(map[string]any)
					ofObject.set(meta)
					before := readAs(t, k, object, Reading{})
					p := patchFor(t, k, before, roll("100"))
					after := patched(t, object, p)
					w := readAs(t, k, after, Reading{})
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
