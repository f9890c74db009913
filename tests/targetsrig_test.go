package tests

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// customRig is a rig for custom resources of one kind.
type customRig struct {
	*rig
	custom dynamic.ResourceInterface
}

// ofKind is the rig with the custom resources of its namespace.
func (r *rig) ofKind(resource schema.GroupVersionResource) customRig {
	return customRig{r, dynamic.NewForConfigOrDie(plane.Config()).Resource(resource).Namespace(r.namespace)}
}

// targetRig is a rig for the custom resources of a recipe.
type targetRig struct{ customRig }

// newTargetRig is newRig with an actuator that has a recipe of deploy/targets, its permission and its admission policy. It starts no operator, and
// installs no kind.
func newTargetRig(t *testing.T, recipe string, resource schema.GroupVersionResource, options programs.Options) *targetRig {
	t.Helper()
	options.ActuatorArgs = append([]string{"--settle", "50ms", "--targets-config", recipeFile(recipe)}, options.ActuatorArgs...)
	r := newRig(t, options)
	applyRecipe(t, recipe)
	return &targetRig{r.ofKind(resource)}
}

// recipeFile is the path of the file of targets of a recipe.
func recipeFile(recipe string) string {
	return filepath.Join("..", "deploy", "targets", recipe, recipe+".yaml")
}

// applyRecipe applies the permission of a recipe, and its admission policy, and lets it have its Events in that of deploy/admission, which tests share.
func applyRecipe(t *testing.T, recipe string) {
	t.Helper()
	for _, object := range recipeObjects(t, recipe) {
		if object.GetLabels()["keyturn.dev/target"] != "" || strings.HasSuffix(object.GetName(), "-target-"+recipe) {
			content, err := object.MarshalJSON()
			if err == nil {
				err = plane.ApplyYAML(t.Context(), bytes.NewReader(content))
			}
			testkit.Must(t, err)
		}
		if object.GetKind() != "ValidatingAdmissionPolicy" || object.GetName() != "keyturn-system-actuator" {
			continue
		}
		conditions, _, err := unstructured.NestedSlice(object.Object, "spec", "matchConditions")
		if err != nil || len(conditions) != 4 {
			t.Fatalf("the conditions of the policy: got %v, %v, want one more than it has without a target", conditions, err)
		}
		condition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"matchConditions": conditions[3:]}}}
		condition.SetGroupVersionKind(object.GroupVersionKind())
		policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
		// It is that of another manager than what the other tests apply.
		_, err = dynamic.NewForConfigOrDie(plane.Config()).Resource(policies).Apply(t.Context(), object.GetName(), condition,
			metav1.ApplyOptions{FieldManager: "target-" + recipe})
		testkit.Must(t, err)
	}
}

// recipeObjects are the manifests of deploy/base with a recipe.
func recipeObjects(t *testing.T, recipe string) []*unstructured.Unstructured {
	t.Helper()
	dir := t.TempDir()
	path := func(elem ...string) string {
		absolute, err := filepath.Abs(filepath.Join(append([]string{"..", "deploy"}, elem...)...))
		testkit.Must(t, err)
		if absolute, err = filepath.Rel(dir, absolute); err != nil {
			t.Fatal(err)
		}
		return absolute
	}
	overlay := fmt.Sprintf("resources: [%s]\ncomponents: [%s, %s]\n", path("base"), path("components", "targets"), path("targets", recipe))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600))
	content, err := testbed.Kustomize(t.Context(), os.Stderr, dir)
	testkit.Must(t, err)
	objects, err := testbed.ReadManifests(bytes.NewReader(content))
	testkit.Must(t, err)
	return objects
}

// create creates an object of which a manifest says all but the namespace.
func (r *targetRig) create(form string, values ...any) {
	r.Helper()
	manifest := strings.Replace(fmt.Sprintf(form, values...), "metadata: {", "metadata: {namespace: "+r.namespace+", ", 1)
	testkit.Must(r, plane.ApplyYAML(r.Context(), strings.NewReader(manifest)))
}

func (r customRig) object(name string) *unstructured.Unstructured {
	r.Helper()
	object, err := r.custom.Get(r.Context(), name, metav1.GetOptions{})
	testkit.Must(r, err)
	return object
}

// field returns a text in an object, empty if it has none there.
func (r customRig) field(name string, path ...string) string {
	r.Helper()
	text, _, err := unstructured.NestedString(r.object(name).Object, path...)
	testkit.Must(r, err)
	return text
}

// merge makes a merge patch of an object, or of a subresource.
func (r customRig) merge(name, patch string, subresources ...string) {
	r.Helper()
	if _, err := r.custom.Patch(r.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...); err != nil {
		r.Fatal(err)
	}
}

// starts returns how many rollouts have started.
func (r *targetRig) starts() int {
	r.Helper()
	started := 0
	for _, outcome := range r.outcomes() {
		if outcome.Verb == events.VerbStarted {
			started++
		}
	}
	return started
}

// awaitSet waits until a StatefulSet is as it is to be.
func (r *targetRig) awaitSet(name, what string, is func(*appsv1.StatefulSet) bool) {
	r.Helper()
	r.eventually("statefulset "+name+" "+what, func(ctx context.Context) bool {
		set, err := r.client.AppsV1().StatefulSets(r.namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && is(set)
	})
}

func isReady(set *appsv1.StatefulSet) bool {
	return set.Status.ReadyReplicas == *set.Spec.Replicas && set.Status.UpdatedReplicas == *set.Spec.Replicas &&
		set.Status.ObservedGeneration == set.Generation
}
