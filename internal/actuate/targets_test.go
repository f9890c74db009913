package actuate

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/workload"
)

// targetsFile has two kinds of custom resources, of which one may own the other, and one whose operator removes the text that makes it act.
const targetsFile = `targets:
- {apiVersion: example.org/v1, kind: Widget, resource: widgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
- {apiVersion: example.org/v1, kind: Gadget, resource: gadgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
- apiVersion: example.org/v1
  kind: Lever
  resource: levers
  reads: [{kind: secret, path: spec.secret}]
  trigger: {field: "metadata.annotations['example.org/roll']", text: now}
`

func targetsOf(t *testing.T) (workload.Kinds, workload.Reading) {
	t.Helper()
	options := testOptions()
	options.TargetsConfig = filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(options.TargetsConfig, []byte(targetsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	kinds, err := options.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	return kinds, workload.Reading{Owners: kinds.Owners()}
}

// ownerNamed returns an object of a kind that reads secret/db. If owner is not empty, its controller is that object.
func ownerNamed(t *testing.T, kinds workload.Kinds, reading workload.Reading, kind, name, version, ownerKind, owner string) *workload.Workload {
	t.Helper()
	k, ok := kinds.Named(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secret": "db"}}}
	object.SetName(name)
	object.SetNamespace("shop")
	object.SetUID("uid-1")
	object.SetResourceVersion(version)
	object.SetAnnotations(map[string]string{workload.AnnotationRollOn: "auto"})
	if owner != "" {
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: ownerKind, Name: owner, Controller: new(true)}})
	}
	w, ok := workload.Read(k, object, reading)
	if !ok {
		t.Fatal("it cannot be read")
	}
	return w
}
