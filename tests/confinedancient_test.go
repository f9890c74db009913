package tests

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/tests/testkit"
)

// editedByMany has more people edit an object than the API server keeps apart.
func (c *confined) editedByMany(to target) {
	c.Helper()
	for i := range 12 {
		edit := fmt.Appendf(nil, `{"metadata":{"annotations":{"edited-%d":"by hand"}}}`, i)
		_, err := c.admin.Resource(to.resource).Namespace(c.namespace).Patch(c.Context(), to.name, types.MergePatchType, edit,
			metav1.PatchOptions{FieldManager: fmt.Sprint("editor-", i)})
		testkit.Must(c, err)
	}
}

// fieldsOf is the text of what a manager owns by updates.
func fieldsOf(entries []metav1.ManagedFieldsEntry, manager string) string {
	of := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationUpdate
	})
	if of < 0 {
		return ""
	}
	return entries[of].FieldsV1.GetRawString()
}

// rejoinings are changes of what the API server has joined, beside entries of some who edited and of an applier.
var rejoinings = []struct {
	name   string
	change func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry
}{
	{"says that the joined oldest own an annotation of others", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return with(entries, ancient, func(f string) string {
			return strings.Replace(f, `"f:annotations":{`, `"f:annotations":{"f:owner":{},`, 1)
		})
	}},
	{"says that the joined oldest own a field of the spec", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return with(entries, ancient, func(f string) string { return `{"f:spec":{"f:paused":{}},` + strings.TrimPrefix(f, "{") })
	}},
	{"says that the joined oldest own what the applier does", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		of := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == applier })
		return with(entries, ancient, func(string) string { return entries[of].FieldsV1.GetRawString() })
	}},
	{"says that the joined oldest own nothing", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return with(entries, ancient, func(string) string { return `{"f:metadata":{"f:annotations":{"f:keyturn.dev/last":{}}}}` })
	}},
	{"forgets the joined oldest", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return without(entries, ancient)
	}},
	{"forgets one who edited", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		of := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return strings.HasPrefix(e.Manager, "editor-") })
		return without(entries, entries[of].Manager)
	}},
	{"forgets the applier", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return without(entries, applier)
	}},
	{"has the joined oldest apply", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return append(entries, entryOf(ancient, metav1.ManagedFieldsOperationApply, entries))
	}},
	{"joins the oldest of a subresource", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		joined := entryOf(ancient, metav1.ManagedFieldsOperationUpdate, entries)
		joined.Subresource = "status"
		return append(entries, joined)
	}},
}

// The API server joins the oldest of many owners when Keyturn writes. Whoever could say what is joined could say what anybody owns.
func TestTheActuatorsTokenJoinsNoOwnersButTheOldest(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	targets := append([]target{externalOf}, templated...)
	before, rolls, joined := map[target][]metav1.ManagedFieldsEntry{}, map[target]string{}, map[target][]metav1.ManagedFieldsEntry{}
	allowed(func(to target, patch forged) { rolls[to] = patch.operations })
	for _, to := range targets {
		c.owned(to)
		c.editedByMany(to)
		before[to] = c.get(to).GetManagedFields()
	}
	c.confine("")
	for _, to := range targets {
		after, err := c.attempt(c.namespace, to, rolls[to], metav1.DryRunAll)
		if err != nil {
			t.Fatalf("a roll of %s: %v", to.resource.Resource, err)
		}
		joined[to] = after.GetManagedFields()
		if of := fieldsOf(joined[to], ancient); of == "" || of == fieldsOf(before[to], ancient) {
			t.Fatalf("a roll of %s: the joined oldest own %q as before, want that the API server joins one more", to.resource.Resource, of)
		}
	}
	for _, to := range targets {
		if err := c.patch(c.namespace, to, rolls[to]+", "+owns(joined[to])); err != nil {
			t.Errorf("a roll of %s that says what the API server does: %v", to.resource.Resource, err)
		}
		for _, forged := range rejoinings {
			if err := c.patch(c.namespace, to, rolls[to]+", "+owns(forged.change(slices.Clone(joined[to])))); !c.refused(err) {
				t.Errorf("a patch that %s of %s: got %v, want that the policy refuses it", forged.name, to.resource.Resource, err)
			}
		}
	}
}

// owns is a patch that sets managedFields.
func owns(entries []metav1.ManagedFieldsEntry) string {
	return strings.TrimPrefix(reown(entries), recordOf+", ")
}

// A field that an applier no longer applies stays if somebody else is said to own it.
func TestWhatTheJoinedOldestAreSaidToOwnStays(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	applied := c.owned(deployment)
	stays := entryOf(ancient, metav1.ManagedFieldsOperationUpdate, applied.GetManagedFields())
	stays.FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:owner":{}}}}`)
	testkit.Must(t, c.send(c.namespace, deployment, reown(append(applied.GetManagedFields(), stays))))
	after := c.applyWithout(applied, "owner")
	if _, there := after.GetAnnotations()["owner"]; !there {
		t.Error("the annotation that the applier removed is gone, want that it stays")
	}
}

// The API server drops the owners of a version that is served no more, and of no other. A token chooses the version of its request.
func TestTheActuatorsTokenForgetsNoOwnersOfAnotherVersion(t *testing.T) {
	t.Parallel()
	testkit.Must(t, plane.Apply(t.Context(), "testdata/widgets.yaml"))
	c := newConfined(t)
	widget := target{schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}, "main", ""}
	c.apply(c.own(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: keyturn-actuator-widgets}
rules: [{apiGroups: [example.org], resources: [widgets], verbs: [patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: keyturn-actuator-widgets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: keyturn-actuator-widgets}
subjects: [{kind: ServiceAccount, name: keyturn-actuator, namespace: keyturn-system}]
`))
	c.awaitRight(c.namespace, "patch widgets.example.org")
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1beta1", "kind": "Widget", "metadata": map[string]any{"name": widget.name, "labels": map[string]any{"team": "shop"}},
		"spec": map[string]any{"size": int64(3)},
	}}
	_, err := c.admin.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1beta1", Resource: "widgets"}).Namespace(c.namespace).
		Apply(t.Context(), widget.name, applied, metav1.ApplyOptions{FieldManager: applier})
	testkit.Must(t, err)
	edit := []byte(`{"metadata":{"annotations":{"edited":"by hand"}}}`)
	edited, err := c.admin.Resource(widget.resource).Namespace(c.namespace).Patch(t.Context(), widget.name, types.MergePatchType, edit,
		metav1.PatchOptions{FieldManager: editor})
	testkit.Must(t, err)
	forgets := reown(without(edited.GetManagedFields(), applier))
	after, err := c.attempt(c.namespace, widget, forgets, metav1.DryRunAll)
	if err != nil || slices.ContainsFunc(after.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == applier }) {
		t.Fatalf("without the policy: got %v, want that the applier owns nothing any more", err)
	}

	policy, err := os.ReadFile("../deploy/targets/policy/target.yaml")
	testkit.Must(t, err)
	c.apply(c.own(string(policy)))
	name := c.system + "-target"
	t.Cleanup(func() { removePolicies(t, []string{name}, []string{name}) })
	refused := func(operations string) bool {
		err := c.patch(c.namespace, widget, operations)
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+name+"'")
	}
	testkit.Eventually(t, "the policy is in force", func() bool { return refused(`{op: add, path: /metadata/labels/a, value: b}`) })
	if !refused(forgets) {
		t.Error("a patch that forgets the owners of another version passes, want that the policy refuses it")
	}
	if err := c.patch(c.namespace, widget, recordOf); err != nil {
		t.Errorf("a record: %v", err)
	}
}
