package install

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

// argoCDApplication makes what differs from the repository as it is there, and deletes what is not there.
const argoCDApplication = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: NAMESPACE, namespace: argocd}
spec:
  project: default
  source: {repoURL: ADDRESS, targetRevision: main, path: keys}
  destination: {server: https://kubernetes.default.svc, namespace: NAMESPACE}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
`

// The Job expires ten minutes after it has ended. That must not make the application differ from its repository for ever.
func TestArgoCDIsSyncedWithAndWithoutTheJobOfTheKeys(t *testing.T) {
	testkit.Nightly(t)
	server, err := plane.StartArgoCD(t.Context())
	testkit.Must(t, err)
	server.StopAfter(t)
	k := newKubelet(t, plane.Namespace(t))
	repository := keysRepository(t, k.namespace)
	apps := dynamic.NewForConfigOrDie(plane.Config()).Resource(applications).Namespace(testbed.ArgoCDNamespace)
	manifest := strings.NewReplacer("NAMESPACE", k.namespace, "ADDRESS", repository.URL).Replace(argoCDApplication)
	apply(t, manifest)
	var last string
	await := func(what string) {
		t.Helper()
		testkit.Await(t, "Argo CD is synced "+what, func(ctx context.Context) bool {
			app, err := apps.Get(ctx, k.namespace, metav1.GetOptions{})
			if err != nil {
				return false
			}
			sync, _, _ := unstructured.NestedString(app.Object, "status", "sync", "status")
			phase, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "phase")
			_, asked := app.GetAnnotations()["argocd.argoproj.io/refresh"]
			last = fmt.Sprintf("%s, %s, asked %v", sync, phase, asked)
			return !asked && sync == "Synced" && phase == "Succeeded"
		}, func() string { return "it is " + last })
	}
	await("when the Job has ended")
	jobs := k.client.BatchV1().Jobs(k.namespace)
	made, err := jobs.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(made.Items) != 1 {
		t.Fatalf("got %d Jobs, %v, want one", len(made.Items), err)
	}
	background := metav1.DeletePropagationBackground
	testkit.Must(t, jobs.Delete(t.Context(), made.Items[0].Name, metav1.DeleteOptions{PropagationPolicy: &background}))
	refresh := []byte(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}`)
	if _, err := apps.Patch(t.Context(), k.namespace, types.MergePatchType, refresh, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	await("when the Job is gone")
	if again, err := jobs.List(t.Context(), metav1.ListOptions{}); err != nil || len(again.Items) != 0 {
		t.Errorf("got %d Jobs, %v, want that none was made again", len(again.Items), err)
	}
}

// keysRepository has the manifests of deploy/keys for a namespace.
func keysRepository(t *testing.T, namespace string) *testbed.Repository {
	t.Helper()
	repository := testbed.NewRepository(t, "apps")
	manifests := renderOverlay(t, namespace, strings.ReplaceAll(imageOverlay, "TAG", "v0.1.0"))
	testkit.WriteFile(t, filepath.Join(repository.Dir, "keys", "keys.yaml"), manifests)
	if _, err := repository.Commit(t.Context(), "the keys"); err != nil {
		t.Fatal(err)
	}
	return repository
}
