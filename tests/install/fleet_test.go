package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

var (
	gitRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	ociRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "ocirepositories"}
	kustomizations  = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
)

// rootSync is what "flux bootstrap" leaves in a cluster: all that is in the operator's own repository is applied.
const rootSync = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {interval: 1h, url: URL, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: fleet, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 1s
  prune: true
  sourceRef: {kind: GitRepository, name: fleet}
  path: ./
`

// fleet is the repository of an operator, and what Flux makes of it.
type fleet struct {
	*testing.T
	client dynamic.Interface
	// own is the operator's repository, and keyturn this one, as far as Flux fetches it.
	own, keyturn *testbed.Repository
	requests     int
}

// newFleet makes both repositories and has Flux apply the operator's, which is empty.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{T: t, client: dynamic.NewForConfigOrDie(plane.Config())}
	f.own, f.keyturn = testbed.NewRepository(t, "fleet"), testbed.NewRepository(t, "keyturn")
	testkit.Must(t, os.CopyFS(filepath.Join(f.keyturn.Dir, "deploy"), os.DirFS("../../deploy")))
	if _, err := f.keyturn.Commit(t.Context(), "what is being tested"); err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, f.keyturn.Tag(t.Context(), testkit.Version(t, "../..")))
	f.write("kustomization.yaml", "resources: []\n")
	if _, err := f.own.Commit(t.Context(), "begin"); err != nil {
		t.Fatal(err)
	}
	apply(t, strings.ReplaceAll(rootSync, "URL", f.own.URL))
	t.Cleanup(f.remove)
	return f
}

// remove deletes Flux's own objects. If the test has failed, Flux prunes what they have applied.
func (f *fleet) remove() {
	ctx, stop := running.WithTimeout(context.WithoutCancel(f.Context()), testkit.Patience)
	defer stop()
	if f.Failed() {
		f.describe(ctx)
	}
	for _, resource := range []schema.GroupVersionResource{kustomizations, gitRepositories} {
		objects := f.client.Resource(resource).Namespace(testbed.FluxNamespace)
		if err := objects.Delete(ctx, "fleet", metav1.DeleteOptions{}); err != nil {
			f.Errorf("removing fleet: %v", err)
		}
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			left, err := objects.List(ctx, metav1.ListOptions{})
			return err == nil && len(left.Items) == 0, nil
		})
		if err != nil {
			f.Errorf("%s of flux are left: %v", resource.Resource, err)
		}
	}
}

// describe logs how all that Flux works on stands.
func (f *fleet) describe(ctx context.Context) {
	for _, resource := range []schema.GroupVersionResource{gitRepositories, ociRepositories, kustomizations} {
		objects, err := f.client.Resource(resource).Namespace(testbed.FluxNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			f.Logf("listing %s: %v", resource.Resource, err)
			continue
		}
		for _, object := range objects.Items {
			conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
			f.Logf("%s %s: %v", object.GetKind(), object.GetName(), conditions)
		}
	}
}

// write writes a file of the operator's repository.
func (f *fleet) write(name, content string) {
	f.Helper()
	testkit.WriteFile(f.T, filepath.Join(f.own.Dir, name), content)
}

// push commits the written files, and returns when Flux has applied them.
func (f *fleet) push(message string) {
	f.Helper()
	commit, err := f.own.Commit(f.Context(), message)
	testkit.Must(f, err)
	f.request(gitRepositories, "fleet")
	f.eventually("flux has applied the commit", func(ctx context.Context) bool {
		return strings.HasSuffix(f.field(ctx, "fleet", "lastAppliedRevision"), commit) && f.condition(ctx, "fleet").Status == metav1.ConditionTrue
	})
}

// reconcile has Flux look at a Kustomization again, and returns its Ready condition when that is known.
func (f *fleet) reconcile(name string) metav1.Condition {
	f.Helper()
	request := f.request(kustomizations, name)
	var ready metav1.Condition
	f.eventually("flux has reconciled "+name, func(ctx context.Context) bool {
		ready = f.condition(ctx, name)
		return f.field(ctx, name, "lastHandledReconcileAt") == request && ready.Status != metav1.ConditionUnknown && ready.Status != ""
	})
	return ready
}

func (f *fleet) request(resource schema.GroupVersionResource, name string) string {
	f.Helper()
	f.requests++
	request := fmt.Sprintf("%s-%d", f.Name(), f.requests)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, request)
	_, err := f.client.Resource(resource).Namespace(testbed.FluxNamespace).Patch(f.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	testkit.Must(f, err)
	return request
}

// field returns a field of a Kustomization's status, or "" without a status.
func (f *fleet) field(ctx context.Context, name, field string) string {
	value, _, _ := unstructured.NestedString(f.status(ctx, name), field)
	return value
}

// condition returns a Kustomization's condition Ready. It is zero if there is none, or only for an older generation.
func (f *fleet) condition(ctx context.Context, name string) metav1.Condition {
	status := f.status(ctx, name)
	raw, err := json.Marshal(status["conditions"])
	testkit.Must(f, err)
	var conditions []metav1.Condition
	testkit.Must(f, json.Unmarshal(raw, &conditions))
	for _, condition := range conditions {
		if condition.Type == "Ready" && condition.ObservedGeneration == status["generation"] {
			return condition
		}
	}
	return metav1.Condition{}
}

// status returns a Kustomization's status and generation. It is empty without the Kustomization.
func (f *fleet) status(ctx context.Context, name string) map[string]any {
	object, err := f.client.Resource(kustomizations).Namespace(testbed.FluxNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return map[string]any{}
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	status["generation"] = object.GetGeneration()
	return status
}

// eventually waits for a condition.
func (f *fleet) eventually(what string, condition func(context.Context) bool) {
	f.Helper()
	testkit.Await(f.T, what, condition)
}
