package inspect

import (
	"bytes"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// customClient is an API server that serves Rollouts, but has none.
func customClient() *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}: "RolloutList",
	})
}

// rolloutOf is a Rollout of Argo Rollouts that rolls on the Secret db.
func rolloutOf(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
		"metadata": map[string]any{
			"namespace": "shop", "name": name, "uid": "uid-" + name, "resourceVersion": "50", "annotations": map[string]any{workload.AnnotationRollOn: "secret/db"},
		},
		"spec": spec,
	}}
}

// abortedRollout is a Rollout that someone has aborted.
func abortedRollout(name string, spec map[string]any) *unstructured.Unstructured {
	rollout := rolloutOf(name, spec)
	rollout.Object["status"] = map[string]any{"abort": true, "phase": "Degraded"}
	return rollout
}

func TestExplainSaysWhatAnAbortedRolloutHolds(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	runs := func(deployment string) map[string]any {
		return map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": deployment}}
	}
	own := map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "own"}}}}
	custom := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), abortedRollout("edge", runs("web")), rolloutOf("inner", runs("web")),
		rolloutOf("fine", runs("api")), abortedRollout("own", own))
	client := fake.NewClientset(deploymentOf("web", rollOn("auto")), deploymentOf("api", rollOn("auto")), deploymentOf("plain", rollOn("auto")))
	const holds = "hold (rollout-aborted): its own rollout was aborted"
	const until = " was aborted (rollout-aborted). No change rolls it until someone lifts that: `kubectl argo rollouts retry rollout "
	const edge = "rollout/edge, which runs its pods," + until + "edge -n shop`, or promote or undo it."
	for _, test := range []struct {
		name, workload string
		kinds          workload.Kinds
		want           []string
	}{
		{"of the Deployment whose pods it runs", "deployment/web", nil, []string{edge, holds}},
		{"of itself", "rollout/own", nil, []string{"It" + until + "own -n shop`, or promote or undo it.", holds}},
		{"of a Deployment whose Rollout goes on", "deployment/api", nil, nil},
		{"where the actuator knows no Rollouts", "deployment/web", workload.BuiltIn(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := optionsFor()
			options.Clients = workload.Clients{Typed: client, Dynamic: custom}
			if test.kinds != nil {
				options.Kinds = test.kinds
			}
			said := explainSays(t, options, b, test.workload, test.want...)
			if len(test.want) == 0 && strings.Contains(said, "abort") {
				t.Errorf("it says that something was aborted:\n%s", said)
			}
		})
	}
}

func TestExplainSaysThatRolloutsCannotBeRead(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	rollouts := schema.GroupResource{Group: "argoproj.io", Resource: "rollouts"}
	for refusal, want := range map[error]bool{
		apierrors.NewForbidden(rollouts, "", nil): true,
		apierrors.NewNotFound(rollouts, ""):       false, // The kind is not installed.
	} {
		custom := customClient()
		custom.PrependReactor("list", "rollouts", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
		options := optionsFor(deploymentOf("web", rollOn("auto")))
		options.Clients.Dynamic = custom
		said := explainSays(t, options, b, "deployment/web")
		if got := strings.Contains(said, "! no permission to list rollouts.argoproj.io"); got != want {
			t.Errorf("after %v, it says so: %t, want %t:\n%s", refusal, got, want, said)
		}
	}
}

func TestExplainKnowsRollouts(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	options := optionsFor(deploymentOf("web", nil))
	options.Clients.Dynamic = dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(),
		rolloutOf("own", map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "own"}}}}),
		rolloutOf("edge", map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": "web"}}),
		rolloutOf("lost", map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": "gone"}}))
	const asks = "keyturn.dev/roll-on: secret/db"
	explainSays(t, options, b, "rollout/own", "rollout/own in namespace shop of cluster demo", asks)
	explainSays(t, options, b, "rollout/edge", "deployment/web in namespace shop of cluster demo", asks) // Its pods run that template.
	testkit.WantError(t, explainInShop(t, options, b, "rollout/lost", &bytes.Buffer{}), "there is no deployment/gone in namespace shop")
}
