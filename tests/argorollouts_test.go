package tests

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestARolloutOfArgoRolloutsIsRolledAndFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t, programs.Options{})
	startArgoRollouts(t)
	r.secret("db", map[string]string{"password": "one"})
	r.createRollout(argoRollout{name: "web", secret: "db", annotations: `{keyturn.dev/roll-on: auto}`})
	r.createRollout(argoRollout{name: "other", secret: "db", annotations: `{}`})
	r.createRollout(argoRollout{name: "empty", secret: "db", annotations: `{keyturn.dev/roll-on: auto}`})
	for _, name := range []string{"web", "other", "empty"} {
		r.awaitPhase(name, "Healthy")
	}
	// The API server keeps it, and the controller does until it writes the next revision.
	r.setSpec("empty", `{"template":{"metadata":{"annotations":{}}}}`)
	r.start()
	if _, has, _ := unstructured.NestedMap(r.rollout("empty").Object, "spec", "template", "metadata", "annotations"); !has {
		t.Error("an object of annotations that is empty is not kept")
	}
	r.secret("db", map[string]string{"password": "two"})

	completed := r.outcomeOf("web", events.VerbCompleted)
	if completed.Workload.Kind != "rollout" || completed.Revision != r.templateRevision("web") || completed.Revision == "" {
		t.Errorf("completed: got %s at revision %q, want rollout/web at %q", completed.Workload, completed.Revision, r.templateRevision("web"))
	}
	r.outcomeOf("empty", events.VerbCompleted)
	if phase := r.field("web", "status", "phase"); phase != "Healthy" {
		t.Errorf("phase when it was completed: got %s, want Healthy", phase)
	}
	if got := r.replicaSets("web"); got != 2 {
		t.Errorf("ReplicaSets: got %d, want the one of before and one new one", got)
	}
	if got := r.replicaSets("other"); got != 1 {
		t.Errorf("ReplicaSets of the one that asks for nothing: got %d, want 1", got)
	}
}

// uninstall removes a kind, and with it all that there are.
func uninstall(t *testing.T, name string) {
	t.Helper()
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	kinds := dynamic.NewForConfigOrDie(plane.Config()).Resource(resource)
	testkit.Await(t, "the kind is not installed", func(ctx context.Context) bool {
		err := kinds.Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err != nil
	})
}
