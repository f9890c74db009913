package inspect

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestKindsHaveTheNamesOfKubectl(t *testing.T) {
	kinds := append(workload.BuiltIn(), workload.ArgoRollout())
	for name, want := range map[string]string{
		"deployment": "deployment", "deployments": "deployment", "Deployment": "deployment", "deployment.apps": "deployment", "deploy": "deployment",
		"sts": "statefulset", "daemonsets": "daemonset", "cj": "cronjob", "pod": "", "": "",
		"rollout": "rollout", "rollouts": "rollout", "rollouts.argoproj.io": "rollout", "rollout.argoproj.io": "rollout",
		"deployments.v1.apps": "deployment", "rollouts.argo": "rollout", "deployments.example.com": "", "rollouts.apps": "",
	} {
		if got, known := kindOf(kinds, name); got.Name != want || known != (want != "") {
			t.Errorf("%q is %q, want %q", name, got.Name, want)
		}
	}
}

// targetsFile has two kinds of custom resources, one of which may own the other.
const targetsFile = `targets:
- {apiVersion: example.org/v1, kind: Widget, resource: widgets, trigger: {annotations: spec.annotations}}
- {apiVersion: example.org/v1, kind: Gadget, resource: gadgets, trigger: {annotations: spec.annotations}}
`

// controlledBy returns owner references to a controller of a kind in the group example.org.
func controlledBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: kind, Name: name, Controller: new(true)}}
}

func customOf(kind, name string, owners []metav1.OwnerReference) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": kind}}
	object.SetName(name)
	object.SetNamespace("shop")
	object.SetUID("uid-1")
	object.SetResourceVersion("50")
	object.SetOwnerReferences(owners)
	return object
}

func TestExplainIsAboutTheOutermostController(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	file := filepath.Join(t.TempDir(), "targets.yaml")
	testkit.Must(t, os.WriteFile(file, []byte(targetsFile), 0o600))
	targets, err := workload.ReadTargets(file)
	testkit.Must(t, err)
	owned, orphan := deploymentOf("web", rollOn("auto")), deploymentOf("orphan", rollOn("auto"))
	owned.OwnerReferences, orphan.OwnerReferences = controlledBy("Gadget", "inner"), controlledBy("Gadget", "gone")
	options := optionsFor(owned, orphan)
	options.Kinds, options.Reading = append(workload.BuiltIn(), targets...), workload.Reading{Owners: targets.Owners()}
	options.Clients.Dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "example.org", Version: "v1", Resource: "widgets"}: "WidgetList",
		{Group: "example.org", Version: "v1", Resource: "gadgets"}: "GadgetList",
	},
		customOf("Gadget", "inner", controlledBy("Widget", "outer")), customOf("Widget", "outer", nil),
		customOf("Gadget", "round", controlledBy("Widget", "round")), customOf("Widget", "round", controlledBy("Gadget", "round")),
		customOf("Widget", "self", controlledBy("Widget", "self")),
	)
	const reads = "secret/db "
	for _, tt := range []struct {
		workload string
		want     []string
	}{
		{"deployment/web", []string{"widget/outer in namespace", reads}},
		{"widget/outer", []string{"widget/outer in namespace", reads}},
		{"deployment/orphan", []string{"deployment/orphan in namespace", "! deployment/orphan is rolled itself: its controller gadget/gone is not there", reads}},
		{"gadget/round", []string{"gadget/round in namespace", "! gadget/round and its controllers own each other"}},
		{"widget/self", []string{"widget/self in namespace", "! widget/self and its controllers own each other"}},
	} {
		t.Run(tt.workload, func(t *testing.T) {
			explainSays(t, options, b, tt.workload, tt.want...)
		})
	}
}
