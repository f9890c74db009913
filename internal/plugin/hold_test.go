package plugin

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAllWorkloadsOfTheNamespaceThatAreOnHoldAreFound(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere") // So custom resources of the installation are not known.
	deployment := func(namespace, name, hold string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{events.AnnotationHold: hold},
		}}
	}
	p := New("dev")
	root := p.Command()
	rollouts := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	p.access.typed = fake.NewClientset(deployment("shop", "held", "load test"), deployment("shop", "empty", " "), deployment("bank", "other", "x"))
	p.access.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{rollouts: "RolloutList"})
	cmd, _, err := root.Find([]string{"release"})
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	cmd.SetErr(&errOut)
	a := &annotating{annotator: &annotator{namespace: "shop"}, plugin: p, cmd: cmd, out: &out}
	held, err := a.held(t.Context())
	if diff := cmp.Diff([]string{"deployments/held"}, held); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if !bytes.Contains(errOut.Bytes(), []byte("Custom resources are left out")) {
		t.Errorf("it does not say what it left out: %s", &errOut)
	}
	a.namespace = "empty"
	if held, err := a.held(t.Context()); err != nil || len(held) > 0 || out.String() != "No workload is on hold in namespace empty.\n" {
		t.Errorf("got %v, %v, %q", held, err, &out)
	}
}
