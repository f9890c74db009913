package install

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/tests/testbed"
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

// isPruned checks that nothing is left of an installation that was removed from the repository.
func (i *fluxInstallation) isPruned() {
	i.Helper()
	i.areGone(i.takeOut())
	claims, err := i.kube.CoreV1().PersistentVolumeClaims(corev1.NamespaceAll).List(i.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) > 0 {
		i.Errorf("claims: got %d, %v, want none", len(claims.Items), err)
	}
}

// takeOut removes an installation from the repository, and returns its inventory.
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
	return applied
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
	if err != nil {
		i.Fatal(err)
	}
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
