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

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// argoCD is the real application controller and repository server, with what an application asks of them.
type argoCD struct {
	applications dynamic.ResourceInterface
	// options are the sync options, by commas, annotations those of the Application, and ignored is its ignoreDifferences, all in the form of YAML.
	options, annotations, ignored string
}

// argoCDApplication heals itself: whatever differs from the repository is applied again at once.
const argoCDApplication = `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: NAME-NAMESPACE
  namespace: argocd
  annotations: {ANNOTATIONS}
spec:
  project: default
  source: {repoURL: ADDRESS, targetRevision: main, path: NAME/templates}
  destination: {server: https://kubernetes.default.svc, namespace: NAMESPACE}
  syncPolicy: {automated: {prune: true, selfHeal: true}, syncOptions: [OPTIONS]}
  ignoreDifferences: [IGNORED]
`

// argoCDIgnores is what docs/how-to/gitops.md gives for applications that are replaced.
const argoCDIgnores = `{group: '*', kind: '*', jqPathExpressions: [
    '.metadata.annotations["keyturn.dev/rolled", "keyturn.dev/last", "keyturn.dev/rolled-now", "keyturn.dev/rolled-at", "keyturn.dev/rolls", "keyturn.dev/reverted"]',
    '.spec.template.metadata.annotations["keyturn.dev/revision", "keyturn.dev/cause", "keyturn.dev/traceparent"]',
    '.spec.template.metadata.annotations | select(. == {})']}`

// startArgoCD starts Argo CD for as long as the test runs.
func startArgoCD(t *testing.T) argoCD {
	t.Helper()
	server, err := plane.StartArgoCD(t.Context())
	testkit.Must(t, err)
	server.StopAfter(t)
	resource := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	return argoCD{applications: dynamic.NewForConfigOrDie(plane.Config()).Resource(resource).Namespace(testbed.ArgoCDNamespace)}
}

func (a argoCD) install(r *gitopsRig, app gitopsApp) {
	r.Helper()
	manifest := strings.NewReplacer(
		"NAMESPACE", r.namespace, "NAME", app.name, "ADDRESS", r.repository.URL,
		"OPTIONS", a.options, "ANNOTATIONS", a.annotations, "IGNORED", a.ignored,
	).Replace(argoCDApplication)
	testkit.Must(r, plane.ApplyYAML(r.Context(), strings.NewReader(manifest)))
}

func (a argoCD) sync(r *gitopsRig, app gitopsApp, _ string) {
	r.Helper()
	refresh := []byte(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}`)
	if _, err := a.applications.Patch(r.Context(), a.name(r, app), types.MergePatchType, refresh, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// await waits until the application is synced to the commit, and healthy, after a look at it that was asked for.
func (a argoCD) await(r *gitopsRig, app gitopsApp, commit string) {
	r.Helper()
	var last string
	testkit.Await(r.T, "Argo CD has applied "+app.name, func(ctx context.Context) bool {
		object, err := a.applications.Get(ctx, a.name(r, app), metav1.GetOptions{})
		if err != nil {
			return false
		}
		text := func(path ...string) string {
			value, _, _ := unstructured.NestedString(object.Object, path...)
			return value
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		last = fmt.Sprintf("%s at %s, %s, %s %s, %v", text("status", "sync", "status"), text("status", "sync", "revision"),
			text("status", "health", "status"), text("status", "operationState", "phase"), text("status", "operationState", "message"), conditions)
		_, asked := object.GetAnnotations()["argocd.argoproj.io/refresh"]
		_, operating := object.Object["operation"]
		return !asked && !operating && text("status", "sync", "status") == "Synced" && text("status", "sync", "revision") == commit &&
			text("status", "health", "status") == "Healthy" && text("status", "operationState", "phase") == "Succeeded"
	}, func() string { return "it is " + last })
}

func (argoCD) name(r *gitopsRig, app gitopsApp) string { return app.name + "-" + r.namespace }
