package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/testkit"
)

// confinedTo returns the Widgets for the projector's token, when it may write the fields and nothing else.
func (r *projectRig) confinedTo(paths string) dynamic.ResourceInterface {
	r.Helper()
	r.confine(paths)
	config := configOf(r, r.namespace, projectorAccount)
	widgets := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}).Namespace(r.namespace)
	testkit.Await(r.T, "the policy is in force", func(ctx context.Context) bool {
		_, err := widgets.Patch(ctx, "main", types.MergePatchType, []byte(`{"spec":{"size":9}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return r.refused(err)
	})
	return widgets
}

// refused reports whether the error is the answer of a policy of the rig.
func (r *projectRig) refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+r.namespace+"-proj") && !strings.Contains(err.Error(), "resulted in error")
}

// applyTo applies a spec to the Widget main as the projector does.
func applyTo(ctx context.Context, widgets dynamic.ResourceInterface, spec map[string]any) (*unstructured.Unstructured, error) {
	body := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": "main"}, "spec": spec}}
	return widgets.Apply(ctx, "main", body, metav1.ApplyOptions{FieldManager: "keyturn-projector"})
}

func TestTheProjectorsTokenWritesAFieldBesideADefault(t *testing.T) {
	t.Parallel()
	r := newProjectRig(t, nil)
	r.widget("main", wantsPassword)
	widgets := r.confinedTo("[['spec', 'login', 'password'], ['spec', 'box', 'token']]")
	login := func(fields map[string]any) map[string]any { return map[string]any{"login": fields} }
	if _, err := applyTo(t.Context(), widgets, login(map[string]any{"password": "a", "method": "own"})); !r.refused(err) {
		t.Errorf("another field of a new object: got %v, want that the policy refuses it", err)
	}
	if _, err := applyTo(t.Context(), widgets, map[string]any{"box": map[string]any{"token": "a", "other": "b"}}); !r.refused(err) {
		t.Errorf("another field of a new map that is owned as a whole: got %v, want that the policy refuses it", err)
	}
	for _, body := range []string{
		`{"spec":{"login":{"password":"a","method":"own"}}}`,
		`{"metadata":{"managedFields":[{}]},"spec":{"login":{"password":"a","method":"own"}}}`,
	} {
		if _, err := widgets.Patch(t.Context(), "main", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "keyturn-projector"}); !r.refused(err) {
			t.Errorf("%s: got %v, want that the policy refuses it", body, err)
		}
	}
	// As a user can have it who writes managedFields.
	if _, err := r.widgets.Patch(t.Context(), "main", types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"spec":{"login":{"password":"a","method":"own"}}}`)
	if _, err := widgets.Patch(t.Context(), "main", types.MergePatchType, body, metav1.PatchOptions{FieldManager: "keyturn-projector"}); !r.refused(err) {
		t.Errorf("another field of a new object where nothing is owned: got %v, want that the policy refuses it", err)
	}
	r.widget("main", wantsPassword)
	object, err := applyTo(t.Context(), widgets, login(map[string]any{"password": "a"}))
	testkit.Must(t, err)
	if method, _, _ := unstructured.NestedString(object.Object, "spec", "login", "method"); method != "basic" {
		t.Errorf("the default: got %q", method)
	}
	for _, value := range []string{"b", ""} {
		fields := map[string]any{}
		if value != "" {
			fields["login"] = map[string]any{"password": value}
		}
		if _, err := applyTo(t.Context(), widgets, fields); err != nil {
			t.Errorf("the value %q beside the default: %v", value, err)
		}
	}
}

// The API server bounds the cost of an expression, and refuses everything of the kind beyond that.
func TestThePolicyOfTheProjectorHoldsForTheLargestFile(t *testing.T) {
	t.Parallel()
	const fields, names = 16, 8
	long := strings.Repeat("n", 253)
	for name, own := range map[string]int{"all in one object": names - 1, "each in one of its own": 1} {
		t.Run(name, func(t *testing.T) {
			r := newProjectRig(t, nil)
			r.widget("main", wantsPassword)
			paths, spec := []string{}, map[string]any{}
			for i := range fields {
				path := []string{"spec", "deep"}
				for n := len(path); n < names; n++ {
					path = append(path, long)
					if n >= own+1 || n == names-1 {
						path[n] = fmt.Sprintf("%s%d", long, i)
					}
				}
				paths = append(paths, "['"+strings.Join(path, "', '")+"']")
				testkit.Must(t, unstructured.SetNestedField(spec, strings.Repeat("v", 1000), path[1:]...))
			}
			widgets := r.confinedTo("[" + strings.Join(paths, ", ") + "]")
			// Of others, in the same objects.
			others := []string{}
			for i := range 500 {
				others = append(others, fmt.Sprintf(`"other%d":"text"`, i))
			}
			content := []byte(`{"spec":{"deep":{` + strings.Join(others, ",") + `}}}`)
			if _, err := r.widgets.Patch(t.Context(), "main", types.MergePatchType, content, metav1.PatchOptions{FieldManager: "someone"}); err != nil {
				t.Fatal(err)
			}
			if _, err := applyTo(t.Context(), widgets, spec); err != nil {
				t.Errorf("%.2000s", err)
			}
			testkit.Must(t, unstructured.SetNestedField(spec, "text", "deep", "another"))
			if _, err := applyTo(t.Context(), widgets, spec); !r.refused(err) {
				t.Errorf("another field: got %v, want that the policy refuses it", err)
			}
		})
	}
}
