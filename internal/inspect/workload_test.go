package inspect

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// forbid makes the API server refuse a verb on all resources.
func forbid(client *fake.Clientset, verb string) {
	client.PrependReactor(verb, "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource()
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: resource.Group, Resource: resource.Resource}, "", nil)
	})
}

func TestWhoMayOnlyListOrOnlyGetGetsTheSameExplanation(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{events.AnnotationHold: "moving"}}}
	explain := func(forbidden ...string) (string, error) {
		client := fake.NewClientset(deploymentOf("web", rollOn("auto")), held)
		for _, verb := range forbidden {
			forbid(client, verb)
		}
		var out bytes.Buffer
		options := optionsFor()
		options.Clients.Typed = client
		err := explainInShop(t, options, b, "deployment/web", &out)
		return out.String(), err
	}
	want, err := explain()
	if err != nil || !strings.Contains(want, "namespace shop: moving") {
		t.Fatalf("got %v,\n%s", err, want)
	}
	for _, verb := range []string{"get", "list"} {
		if got, err := explain(verb); err != nil || got != want {
			t.Errorf("without %s: got %v,\n%swant\n%s", verb, err, got, want)
		}
	}
	if _, err := explain("get", "list"); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want that it is forbidden", err)
	}
}

func TestExplainListsNoNamespacesWhenTheActuatorServesSome(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	client := fake.NewClientset(deploymentOf("web", rollOn("auto")), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	options := optionsFor()
	options.Clients.Typed, options.Namespaces = client, []string{"shop"}
	if err := explainInShop(t, options, b, "deployment/web", &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	for _, action := range client.Actions() {
		if action.Matches("list", "namespaces") {
			t.Error("it lists namespaces, which no Role can grant")
		}
	}
}

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
	if err := os.WriteFile(file, []byte(targetsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	targets, err := workload.ReadTargets(file)
	if err != nil {
		t.Fatal(err)
	}
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
