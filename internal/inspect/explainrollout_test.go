package inspect

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

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

func TestExplainKnowsRollouts(t *testing.T) {
	bus := busesOf(t, "demo")[0]
	publish(t, bus, changeOfDB())
	options := ExplainOptions{Origins: events.Origins{Cluster: "demo"}, Clients: workload.Clients{
		Typed: fake.NewClientset(deploymentOf("web", nil)),
		Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(),
			rolloutOf("own", map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "own"}}}}),
			rolloutOf("edge", map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": "web"}}),
			rolloutOf("lost", map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": "gone"}})),
	}}
	const asks = "keyturn.dev/roll-on: secret/db"
	tests := []struct {
		name, workload string
		want           []string
		err            string
	}{
		{name: "with a pod template", workload: "rollout/own", want: []string{"rollout/own in namespace shop of cluster demo", asks}},
		{name: "as the Deployment whose pods it runs", workload: "rollout/edge", want: []string{"deployment/web in namespace shop of cluster demo", asks}},
		{name: "whose Deployment is not there", workload: "rollout/lost", err: "there is no deployment/gone in namespace shop"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			err := Explain(t.Context(), options, &bus.Reader, test.workload, "shop", &out)
			testkit.WantError(t, err, test.err)
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, &out)
				}
			}
		})
	}
}
