package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// The manager of a server-side applier, such as Flux, one of someone who edits, and that to which the API server joins the oldest of many.
const (
	applier = "flux"
	editor  = "kubectl-client-side-apply"
	ancient = "ancient-changes"
)

// owned is confinedObjects as an applier has applied them, with a field and an annotation that an editor has added.
func (c *confined) owned(to target) *unstructured.Unstructured {
	c.Helper()
	object := c.get(to)
	object.SetManagedFields(nil)
	unstructured.RemoveNestedField(object.Object, "status")
	object.SetResourceVersion("")
	client := c.admin.Resource(to.resource).Namespace(c.namespace)
	// An operator that another test runs may have put a finalizer on it.
	object.SetFinalizers(nil)
	testkit.Await(c, to.name+" is deleted", func(ctx context.Context) bool {
		unfinalized := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := client.Patch(ctx, to.name, types.MergePatchType, unfinalized, metav1.PatchOptions{}); err != nil {
			return apierrors.IsNotFound(err)
		}
		return apierrors.IsNotFound(client.Delete(ctx, to.name, metav1.DeleteOptions{}))
	})
	object.SetUID("")
	object.SetCreationTimestamp(metav1.Time{})
	if _, err := client.Apply(c.Context(), to.name, object, metav1.ApplyOptions{FieldManager: applier, Force: true}); err != nil {
		c.Fatal(err)
	}
	edit := []byte(`{"metadata":{"annotations":{"edited":"by hand"}}}`)
	edited, err := client.Patch(c.Context(), to.name, types.MergePatchType, edit, metav1.PatchOptions{FieldManager: editor})
	testkit.Must(c, err)
	return edited
}

func (c *confined) get(to target) *unstructured.Unstructured {
	c.Helper()
	object, err := c.admin.Resource(to.resource).Namespace(c.namespace).Get(c.Context(), to.name, metav1.GetOptions{})
	testkit.Must(c, err)
	return object
}

// reown is a patch that rolls, if that is possible, and sets managedFields.
func reown(entries []metav1.ManagedFieldsEntry) string {
	content, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return recordOf + `, {op: add, path: /metadata/managedFields, value: ` + string(content) + `}`
}

// with returns the entries, of which the one of a manager has another text of its fields.
func with(entries []metav1.ManagedFieldsEntry, manager string, change func(fields string) string) []metav1.ManagedFieldsEntry {
	var changed []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Manager == manager {
			entry.FieldsV1 = metav1.NewFieldsV1(change(entry.FieldsV1.GetRawString()))
		}
		changed = append(changed, entry)
	}
	return changed
}

func without(entries []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	var others []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Manager != manager {
			others = append(others, entry)
		}
	}
	return others
}

// reownings are changes of who owns what, which a server-side applier would act on later.
var reownings = []struct {
	name   string
	change func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry
}{
	{"says that an applier owns what another wrote", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return with(entries, applier, func(f string) string { return strings.Replace(f, `"f:owner":{}`, `"f:owner":{},"f:edited":{}`, 1) })
	}},
	{"says that an applier owns a field of the spec", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return with(entries, applier, func(f string) string { return strings.Replace(f, `"f:spec":{`, `"f:spec":{"f:paused":{},`, 1) })
	}},
	{"takes a field from an applier", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return with(entries, applier, func(f string) string { return strings.Replace(f, `"f:team":{}`, ``, 1) })
	}},
	{"takes all from an applier", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return without(entries, applier)
	}},
	{"takes all from who edited", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return without(entries, editor) }},
	{"says that who edited owns more", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return with(entries, editor, func(f string) string { return strings.Replace(f, `"f:edited":{}`, `"f:edited":{},"f:owner":{}`, 1) })
	}},
	{"forgets who owns anything", func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{{}} }},
	{"adds an applier", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return append(entries, entryOf("argocd", metav1.ManagedFieldsOperationApply, entries))
	}},
	{"adds one who edited", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return append(entries, entryOf("kubectl-edit", metav1.ManagedFieldsOperationUpdate, entries))
	}},
	{"adds one without a name", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return append(entries, entryOf("", metav1.ManagedFieldsOperationUpdate, entries))
	}},
	{"says that Keyturn owns what another wrote", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return append(entries, entryOf("keyturn", metav1.ManagedFieldsOperationUpdate, entries))
	}},
	{"says that the joined oldest own what another wrote", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return append(entries, entryOf(ancient, metav1.ManagedFieldsOperationUpdate, entries))
	}},
	{"says that the joined oldest apply", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return append(entries, entryOf(ancient, metav1.ManagedFieldsOperationApply, entries))
	}},
	{"joins who edited, of whom there are few", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return append(without(entries, editor), entryOf(ancient, metav1.ManagedFieldsOperationUpdate, entries))
	}},
	{"says that Keyturn owns what is in its record", func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		own := entryOf("keyturn", metav1.ManagedFieldsOperationUpdate, entries)
		own.FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:keyturn.dev/rolled":{"f:more":{}}}}}`)
		return append(entries, own)
	}},
}

// unname takes the name of a manager out of the managedFields of an object, as they are after a restore by a tool that writes them itself.
func unname(t testing.TB, objects dynamic.ResourceInterface, name, manager string) {
	t.Helper()
	object, err := objects.Get(t.Context(), name, metav1.GetOptions{})
	testkit.Must(t, err)
	entries := object.GetManagedFields()
	of := slices.IndexFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == manager })
	if of < 0 {
		t.Fatalf("%s: %s owns nothing", name, manager)
	}
	entries[of].Manager = ""
	content, err := json.Marshal(entries)
	testkit.Must(t, err)
	operation := fmt.Appendf(nil, `[{"op":"replace","path":"/metadata/managedFields","value":%s}]`, content)
	after, err := objects.Patch(t.Context(), name, types.JSONPatchType, operation, metav1.PatchOptions{})
	testkit.Must(t, err)
	if !slices.ContainsFunc(after.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == "" }) {
		t.Fatalf("%s: every entry of managedFields has a manager", name)
	}
}

// entryOf is an entry of a manager that owns what an editor has added.
func entryOf(manager string, operation metav1.ManagedFieldsOperationType, entries []metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: entries[0].APIVersion, FieldsType: "FieldsV1", Time: entries[0].Time,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:edited":{}}}}`),
	}
}

// applyWithout has the applier apply a Deployment as it was read, but for one annotation, and returns it as it is then.
func (c *confined) applyWithout(applied *unstructured.Unstructured, annotation string) *unstructured.Unstructured {
	c.Helper()
	annotations := applied.GetAnnotations()
	delete(annotations, annotation)
	applied.SetAnnotations(annotations)
	applied.SetManagedFields(nil)
	applied.SetResourceVersion("")
	unstructured.RemoveNestedField(applied.Object, "status")
	after, err := c.admin.Resource(deployment.resource).Namespace(c.namespace).
		Apply(c.Context(), deployment.name, applied, metav1.ApplyOptions{FieldManager: applier, Force: true})
	testkit.Must(c, err)
	return after
}

// An applier removes the fields that it owns and no longer applies. So whoever says that Flux owns a field that Flux does not apply has Flux
// remove it, with Flux's permissions.
func TestAnApplierRemovesWhatItIsSaidToOwn(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	applied := c.owned(deployment)
	entries := reownings[0].change(without(applied.GetManagedFields(), editor))
	body, err := yaml.YAMLToJSON([]byte("[" + reown(entries) + "]"))
	testkit.Must(t, err)
	client := c.actuator.Resource(deployment.resource).Namespace(c.namespace)
	if _, err := client.Patch(t.Context(), deployment.name, types.JSONPatchType, body, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	after := c.applyWithout(applied, "edited")
	if value, there := after.GetAnnotations()["edited"]; there {
		t.Errorf("the annotation that the applier never had: got %q, want that the applier removed it", value)
	}
}

func TestTheActuatorsTokenChangesNoOwners(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"", "env-vars"} {
		t.Run("with the strategy "+strategy, func(t *testing.T) {
			t.Parallel()
			c := newConfined(t)
			before := map[target][]metav1.ManagedFieldsEntry{}
			targets := append([]target{externalOf}, templated...)
			for _, to := range targets {
				before[to] = c.owned(to).GetManagedFields()
			}
			c.confine(strategy)
			for _, to := range targets {
				for _, forged := range reownings {
					operations := reown(forged.change(before[to]))
					if to == externalOf {
						operations = strings.TrimPrefix(operations, recordOf+", ")
					}
					if err := c.patch(c.namespace, to, operations); !c.refused(err) {
						t.Errorf("a patch that %s of %s: got %v, want that the policy refuses it", forged.name, to.resource.Resource, err)
					}
				}
			}
		})
	}
}

// What the API server itself does to managedFields when Keyturn writes is allowed.
func TestTheActuatorsTokenWritesWhatOthersOwn(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	wrote := func(to target, of string) {
		allowed(func(allowedOf target, patch forged) {
			if allowedOf != to {
				return
			}
			if err := c.patch(c.namespace, to, patch.operations); err != nil {
				t.Errorf("a patch that %s of %s, %s: %v", patch.name, to.resource.Resource, of, err)
			}
		})
	}
	for _, to := range append([]target{externalOf}, templated...) {
		object := c.owned(to)
		// As from a manifest that was exported after a roll: all that Keyturn writes is the applier's.
		allowed(func(of target, patch forged) {
			if of != to {
				return
			}
			body, err := yaml.YAMLToJSON([]byte("[" + strings.ReplaceAll(patch.operations, "TEMPLATE", to.template) + "]"))
			testkit.Must(t, err)
			exported, err := c.admin.Resource(to.resource).Namespace(c.namespace).Patch(t.Context(), to.name, types.JSONPatchType,
				[]byte(strings.ReplaceAll(string(body), `"x"`, `"y"`)), metav1.PatchOptions{FieldManager: "exporter"})
			testkit.Must(t, err)
			object = exported
		})
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		unstructured.RemoveNestedField(object.Object, "status")
		client := c.admin.Resource(to.resource).Namespace(c.namespace)
		if _, err := client.Apply(t.Context(), to.name, object, metav1.ApplyOptions{FieldManager: applier, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	c.confine("")
	for _, to := range append([]target{externalOf}, templated...) {
		wrote(to, "which an applier owns")
		unname(t, c.admin.Resource(to.resource).Namespace(c.namespace), to.name, editor)
		wrote(to, "which somebody without a name has edited")
		c.editedByMany(to)
		wrote(to, "which many have edited")
	}
}
