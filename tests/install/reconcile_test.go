package install

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// sharesWorkloadsWithFlux holds that Flux, which applies the workloads too, leaves what Keyturn has written to them, and Keyturn what
// Flux writes.
func (i *fluxInstallation) sharesWorkloadsWithFlux() {
	i.Helper()
	before, generation := i.revisions(), i.generation("web")
	i.reconciled("fleet")
	if now := i.revisions(); !maps.Equal(now, before) || i.generation("web") != generation {
		i.Errorf("a reconciliation has changed workloads: got %v, want %v", now, before)
	}
	// A new release of the workload is one rollout, without a change of its sources.
	i.replace("shop.yaml", "example.com/app:1", "example.com/app:2")
	i.push("release the shop")
	if got, want := i.generation("web"), generation+1; got != want {
		i.Errorf("generation of web after its release: got %d, want %d", got, want)
	}
	if now := i.revisions(); !maps.Equal(now, before) {
		i.Errorf("the release has changed what Keyturn wrote: got %v, want %v", now, before)
	}
	i.secret("db", "five")
	i.rolled(before, readers...)
	i.reconciled("fleet")
	if got, want := i.generation("web"), generation+2; got != want {
		i.Errorf("generation of web after its release and one change: got %d, want %d", got, want)
	}
}

// reconciled has Flux reconcile a Kustomization, which must go well.
func (i *fluxInstallation) reconciled(name string) {
	i.Helper()
	if ready := i.reconcile(name); ready.Status != metav1.ConditionTrue {
		i.Fatalf("%s is not ready: %s: %s", name, ready.Reason, ready.Message)
	}
}

// changesNothingAgain holds that Flux writes nothing when nothing has changed, but to its own objects.
func (i *fluxInstallation) changesNothingAgain() {
	i.Helper()
	begin := i.auditEnd()
	i.reconciled("fleet")
	for _, name := range installed {
		i.reconciled(name)
	}
	dryRuns := 0
	for _, entry := range i.audit(begin, testbed.FluxUser) {
		switch entry.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
		default:
			continue
		}
		if strings.Contains(entry.URI, "dryRun=All") {
			dryRuns++ // That is how it looks.
			continue
		}
		if own := strings.HasSuffix(entry.Group, ".toolkit.fluxcd.io") || entry.Resource == "events" || entry.Resource == "leases"; !own ||
			entry.Resource == "kustomizations" && entry.Subresource != "status" {
			i.Errorf("flux: %s %s", entry.Verb, entry.URI)
		}
	}
	if dryRuns == 0 {
		i.Error("flux has not looked at anything: was it another that reconciled?")
	}
}

// isPruned checks that all but the namespace is gone of an installation that was removed from the repository. With the namespace the keys and
// the stream are kept, until it is deleted as docs/how-to/install.md says.
func (i *fluxInstallation) isPruned() {
	i.Helper()
	core, ctx := i.kube.CoreV1(), i.Context()
	i.areGone(i.takeOut())
	for _, name := range installationKeys {
		if _, err := core.Secrets(programs.SystemNamespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			i.Errorf("the key %s: %v", name, err)
		}
	}
	claim, err := core.PersistentVolumeClaims(programs.SystemNamespace).Get(ctx, "data-keyturn-actuator-0", metav1.GetOptions{})
	if err != nil || claim.DeletionTimestamp != nil {
		i.Errorf("the claim of the stream: %v, deleted at %v", err, claim.DeletionTimestamp)
	}
	namespace, err := core.Namespaces().Get(ctx, programs.SystemNamespace, metav1.GetOptions{})
	if err != nil || namespace.DeletionTimestamp != nil {
		i.Errorf("the namespace: %v, deleted at %v", err, namespace.DeletionTimestamp)
	}
	if err := core.Namespaces().Delete(ctx, programs.SystemNamespace, metav1.DeleteOptions{}); err != nil {
		i.Error(err)
	}
	i.eventually("the namespace is gone", func(ctx context.Context) bool {
		_, err := core.Namespaces().Get(ctx, programs.SystemNamespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	claims, err := core.PersistentVolumeClaims(corev1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil || len(claims.Items) > 0 {
		i.Errorf("claims: got %d, %v, want none", len(claims.Items), err)
	}
}

// takeOut removes an installation from the repository, and returns its inventory without the namespace, which Flux is to keep.
func (i *fluxInstallation) takeOut() []*unstructured.Unstructured {
	i.Helper()
	var applied []*unstructured.Unstructured
	for _, name := range installed {
		applied = append(applied, i.inventory(name)...)
	}
	if len(applied) < 20 {
		i.Fatalf("the inventories have %d objects only: %v", len(applied), applied)
	}
	for _, program := range []interface{ Kill() }{i.watcher, i.actuator} {
		program.Kill()
	}
	i.write("kustomization.yaml", "resources: [shop.yaml]\n")
	i.push("remove Keyturn")
	return slices.DeleteFunc(applied, func(object *unstructured.Unstructured) bool { return object.GetKind() == "Namespace" })
}

// areGone waits until objects are gone, and checks that the workloads are not.
func (i *fluxInstallation) areGone(objects []*unstructured.Unstructured) {
	i.Helper()
	for _, object := range objects {
		i.eventually(object.GetKind()+" "+object.GetName()+" is gone", func(ctx context.Context) bool { return !i.exists(ctx, object) })
	}
	if i.generation("web") == 0 {
		i.Error("the workloads are gone with it")
	}
}

// inventory returns the objects that a Kustomization has applied.
func (i *fluxInstallation) inventory(name string) []*unstructured.Unstructured {
	i.Helper()
	entries, _, err := unstructured.NestedSlice(i.status(i.Context(), name), "inventory", "entries")
	testkit.Must(i, err)
	var objects []*unstructured.Unstructured
	for _, entry := range entries {
		entry := entry.(map[string]any)
		// namespace_name_group_kind
		parts := strings.Split(entry["id"].(string), "_")
		if len(parts) != 4 {
			i.Fatalf("inventory of %s: %q is not of four parts", name, entry["id"])
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: parts[2], Version: entry["v"].(string), Kind: parts[3]})
		object.SetNamespace(parts[0])
		object.SetName(parts[1])
		objects = append(objects, object)
	}
	return objects
}
