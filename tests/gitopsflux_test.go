package tests

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// flux is the real source-controller and kustomize-controller.
type flux struct {
	client dynamic.Interface
	// force recreates what cannot be patched.
	force bool
}

// fluxKustomization is one application. Each has a source of its own, which saves asking all of them for one commit.
const fluxKustomization = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: NAME-NAMESPACE, namespace: flux-system}
spec: {interval: 1h, url: ADDRESS, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME-NAMESPACE, namespace: flux-system}
spec: {interval: 1h, retryInterval: 1s, prune: true, force: FORCE, path: ./NAME/templates, sourceRef: {kind: GitRepository, name: NAME-NAMESPACE}}
`

var (
	fluxRepositories   = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	fluxKustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
)

// startFlux starts Flux for as long as the test runs. It reconciles nothing in the namespaces of other tests, which have Kustomizations whose status
// they write themselves.
func startFlux(t *testing.T) flux {
	t.Helper()
	testkit.Must(t, plane.StartFlux(t.Context(), "--watch-all-namespaces=false"))
	for _, name := range []string{build.SourceController, build.KustomizeController} {
		plane.Server(name).StopAfter(t)
	}
	return flux{client: dynamic.NewForConfigOrDie(plane.Config())}
}

func (f flux) install(r *gitopsRig, app gitopsApp) {
	r.Helper()
	manifest := strings.NewReplacer(
		"NAMESPACE", r.namespace, "NAME", app.name, "ADDRESS", r.repository.URL, "FORCE", strconv.FormatBool(f.force),
	).Replace(fluxKustomization)
	testkit.Must(r, plane.ApplyYAML(r.Context(), strings.NewReader(manifest)))
}

// sync has Flux read the repository, and then apply the application. Where there is no commit, the second does not follow from the first.
func (f flux) sync(r *gitopsRig, app gitopsApp, commit string) {
	r.Helper()
	request := fmt.Sprintf("%s-%d", commit, r.requests)
	r.requests++
	r.requested[app.name] = request
	f.request(r, fluxRepositories, app, request)
	testkit.Await(r.T, "Flux has fetched "+app.name, func(ctx context.Context) bool {
		status := f.status(ctx, r, fluxRepositories, app)
		revision, _, _ := unstructured.NestedString(status, "artifact", "revision")
		return status["lastHandledReconcileAt"] == request && strings.HasSuffix(revision, commit)
	})
	f.request(r, fluxKustomizations, app, request)
}

// await waits until Flux has applied the commit when it was last asked to, and says that all is well.
func (f flux) await(r *gitopsRig, app gitopsApp, commit string) {
	r.Helper()
	var last map[string]any
	testkit.Await(r.T, "Flux has applied "+app.name, func(ctx context.Context) bool {
		status := f.status(ctx, r, fluxKustomizations, app)
		if status == nil {
			return false
		}
		last = status
		revision, _ := status["lastAppliedRevision"].(string)
		handled, _ := status["lastHandledReconcileAt"].(string)
		conditions, _, _ := unstructured.NestedSlice(status, "conditions")
		ready := slices.ContainsFunc(conditions, func(condition any) bool {
			c, _ := condition.(map[string]any)
			return c["type"] == "Ready" && c["status"] == string(metav1.ConditionTrue)
		})
		return ready && handled == r.requested[app.name] && strings.HasSuffix(revision, commit)
	}, func() string { return fmt.Sprintf("its status is %v", last) })
	r.awaitPods(app)
}

func (f flux) request(r *gitopsRig, resource schema.GroupVersionResource, app gitopsApp, request string) {
	r.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, request)
	objects := f.client.Resource(resource).Namespace(testbed.FluxNamespace)
	if _, err := objects.Patch(r.Context(), app.name+"-"+r.namespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// status returns the status of an object of Flux, empty if there is none.
func (f flux) status(ctx context.Context, r *gitopsRig, resource schema.GroupVersionResource, app gitopsApp) map[string]any {
	object, err := f.client.Resource(resource).Namespace(testbed.FluxNamespace).Get(ctx, app.name+"-"+r.namespace, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	return status
}
