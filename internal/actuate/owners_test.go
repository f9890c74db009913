package actuate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/workload"
)

// targetsFile has two kinds of custom resources, of which one may own the other.
const targetsFile = `targets:
- {apiVersion: example.org/v1, kind: Widget, resource: widgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
- {apiVersion: example.org/v1, kind: Gadget, resource: gadgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
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

// ownerNamed is an object of a kind that reads secret/db, and whose controller is another one, if that has a name.
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

func wantDependents(t *testing.T, x *index, what string, want ...workload.Key) {
	t.Helper()
	var found []workload.Key
	for _, w := range x.dependents(db) {
		found = append(found, w.Key())
	}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("%s: dependents are %v, want %v", what, found, want)
	}
}

func TestWhatAConfiguredKindOwnsIsRolledThroughTheOutermostOwner(t *testing.T) {
	kinds, reading := targetsOf(t)
	x := newIndex(reading, func(workload.Key) {}, unlinked)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Name: "web-0", Namespace: "shop", UID: "uid-set", ResourceVersion: "10",
		Annotations:     map[string]string{workload.AnnotationRollOn: "secret/db"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Gadget", Name: "web", Controller: new(true)}},
	}}
	statefulSets, _ := kinds.Named("statefulset")
	owned, ok := workload.Read(statefulSets, set, reading)
	if !ok {
		t.Fatal("it cannot be read")
	}
	x.observe(owned, true)
	wantDependents(t, x, "before its controller is known")
	gadget := ownerNamed(t, kinds, reading, "gadget", "web", "11", "Widget", "all")
	x.observe(gadget, true)
	wantDependents(t, x, "before the outermost one is known")
	widget := ownerNamed(t, kinds, reading, "widget", "all", "12", "", "")
	x.observe(widget, true)
	wantDependents(t, x, "when all are known", widget.Key())

	x.observe(ownerNamed(t, kinds, reading, "gadget", "web", "13", "", ""), true)
	got := make(map[workload.Key]bool)
	for _, w := range x.dependents(db) {
		got[w.Key()] = true
	}
	if len(got) != 2 || !got[gadget.Key()] || !got[widget.Key()] {
		t.Errorf("when one is on its own: dependents are %v, want both kinds", got)
	}
	x.forget(gadget.Key(), "uid-1")
	x.forget(widget.Key(), "uid-1")
	wantDependents(t, x, "when the owners are gone, and the garbage collector is about to come")
}

func TestOwnersInACircleEndNowhere(t *testing.T) {
	kinds, reading := targetsOf(t)
	x := newIndex(reading, func(workload.Key) {}, unlinked)
	for round := range 3 {
		for i, kind := range []string{"widget", "gadget"} {
			owner := map[string]string{"widget": "Gadget", "gadget": "Widget"}[kind]
			x.observe(ownerNamed(t, kinds, reading, kind, "web", fmt.Sprint(10+2*round+i), owner, "web"), true)
		}
		if got := len(x.dependents(db)); got != 1 {
			t.Errorf("round %d: got %d dependents, want the one that owns itself only through the other", round, got)
		}
	}
	x.observe(ownerNamed(t, kinds, reading, "widget", "self", "30", "Widget", "self"), true)
	if x.get(workload.Key{Kind: "widget", Namespace: "shop", Name: "self"}).Runs != (workload.Key{}) {
		t.Error("an owner of itself is rolled through itself")
	}
}
