package tests

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/tests/testkit"
)

// enlarge gives the Deployment many containers, variables and annotations, all of which several appliers own. It is near the largest that etcd stores.
func (c *confined) enlarge() {
	c.Helper()
	const containers, variables, sources, annotations, appliers = 20, 60, 20, 100, 4
	object := c.get(deployment)
	var list []any
	for i := range containers {
		var env []any
		for j := range variables {
			env = append(env, map[string]any{"name": fmt.Sprint("VARIABLE_", j), "value": fmt.Sprint("the value number ", j)})
		}
		for j := range sources {
			env = append(env, map[string]any{"name": fmt.Sprintf("STAKATER_APP_%d_SECRET", j), "value": fmt.Sprintf("%040x", j)})
		}
		list = append(list, map[string]any{"name": fmt.Sprint("c", i), "image": "example.com/app", "env": env})
	}
	testkit.Must(c, unstructured.SetNestedSlice(object.Object, list, "spec", "template", "spec", "containers"))
	notes := map[string]string{}
	for i := range annotations {
		notes[fmt.Sprint("example.com/note-", i)] = fmt.Sprint("the note number ", i)
	}
	object.SetAnnotations(notes)
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	unstructured.RemoveNestedField(object.Object, "status")
	for i := range appliers {
		_, err := c.admin.Resource(deployment.resource).Namespace(c.namespace).
			Apply(c.Context(), deployment.name, object, metav1.ApplyOptions{FieldManager: fmt.Sprint("applier-", i), Force: true})
		testkit.Must(c, err)
	}
}

// The API server refuses a request whose expressions cost too much. They cost more for a larger object.
func TestTheActuatorsTokenRollsALargeWorkload(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"", "env-vars"} {
		t.Run("with the strategy "+strategy, func(t *testing.T) {
			t.Parallel()
			c := newConfined(t)
			c.enlarge()
			c.rollOnce(deployment)
			c.confine(strategy)
			wrote := func(what, operations string) {
				if err := c.patch(c.namespace, deployment, operations); err != nil {
					t.Errorf("a patch that %s: %v", what, err)
				}
			}
			allowed(func(to target, patch forged) {
				if to == deployment {
					wrote(patch.name, patch.operations)
				}
			})
			wrote("rolls once more", again)
			if strategy == "env-vars" {
				wrote("writes a variable of Reloader", fmt.Sprintf(`{op: replace, path: TEMPLATE/spec/containers/7/env/70/value, value: "%040x"}`, 1<<40))
			}
		})
	}
}
