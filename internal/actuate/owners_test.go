package actuate

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// targetsFile has two kinds of custom resources, of which one may own the other, and one whose operator removes the text that has it act.
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
	x.written(owned)
	wantDependents(t, x, "before its controller is known", owned.Key())
	gadget := ownerNamed(t, kinds, reading, "gadget", "web", "11", "Widget", "all")
	x.written(gadget)
	wantDependents(t, x, "before the outermost one is known", gadget.Key())
	widget := ownerNamed(t, kinds, reading, "widget", "all", "12", "", "")
	x.written(widget)
	wantDependents(t, x, "when all are known", widget.Key())

	x.written(ownerNamed(t, kinds, reading, "gadget", "web", "13", "", ""))
	got := make(map[workload.Key]bool)
	for _, w := range x.dependents(db) {
		got[w.Key()] = true
	}
	if len(got) != 2 || !got[gadget.Key()] || !got[widget.Key()] {
		t.Errorf("when one is on its own: dependents are %v, want both kinds", got)
	}
	x.forget(gadget.Key(), "uid-1", "")
	x.forget(widget.Key(), "uid-1", "")
	wantDependents(t, x, "when the owners are gone", owned.Key())
	x.written(gadget)
	wantDependents(t, x, "when its controller is back", gadget.Key())
}

func TestWhatOwnsAWorkloadAndIsGoneHandsOverWhatHasChangedSince(t *testing.T) {
	kinds, reading := targetsOf(t)
	var fresh []workload.Key
	x := newIndex(reading, func(workload.Key) {}, func(key workload.Key, _ []events.Source) { fresh = append(fresh, key) })
	gadget := ownerNamed(t, kinds, reading, "gadget", "web", "10", "Widget", "all")
	widget := ownerNamed(t, kinds, reading, "widget", "all", "11", "", "")
	x.listed(gadget, "")
	x.listed(widget, "")
	wantDependents(t, x, "at first", widget.Key())
	k, _ := kinds.Named("widget")
	store := &kindStore{index: x, kind: k, synced: func() {}, seen: "20"}
	store.clear(written)
	wantDependents(t, x, "when the kind of the owner is not served any more", gadget.Key())
	if link, linked := x.get(gadget.Key()).Link(db); !linked || link.Version != "20" || len(fresh) != 1 || fresh[0] != gadget.Key() {
		t.Errorf("secret/db: got %v, %t, asked for %v, want that it is asked about what has changed since version 20", link, linked, fresh)
	}
}

func TestTheLogSaysOnceThatAWorkloadIsRolledWithoutItsController(t *testing.T) {
	kinds, reading := targetsOf(t)
	var log bytes.Buffer
	x := newIndex(reading, func(workload.Key) {}, unlinked)
	reported := newProblems(slog.New(slog.NewTextHandler(&log, nil)), nil)
	said := func(what string, want int) {
		t.Helper()
		reported.report(t.Context(), x.get(workload.Key{Kind: "gadget", Namespace: "shop", Name: "web"}))
		if got := strings.Count(log.String(), "workload=gadget/web namespace=shop controller=widget/all"); got != want {
			t.Errorf("%s: said %d times, want %d:\n%s", what, got, want, &log)
		}
	}
	x.written(ownerNamed(t, kinds, reading, "gadget", "web", "10", "Widget", "all"))
	said("without its controller", 1)
	said("again", 1)
	widget := ownerNamed(t, kinds, reading, "widget", "all", "11", "", "")
	x.written(widget)
	said("when it is there", 1)
	x.forget(widget.Key(), widget.ID.UID, "")
	said("when it has gone", 2)
}

func TestOwnersInACircleEndNowhere(t *testing.T) {
	kinds, reading := targetsOf(t)
	x := newIndex(reading, func(workload.Key) {}, unlinked)
	for round := range 3 {
		for i, kind := range []string{"widget", "gadget"} {
			owner := map[string]string{"widget": "Gadget", "gadget": "Widget"}[kind]
			x.written(ownerNamed(t, kinds, reading, kind, "web", fmt.Sprint(10+2*round+i), owner, "web"))
		}
		if got := len(x.dependents(db)); got != 1 {
			t.Errorf("round %d: got %d dependents, want the one that owns itself only through the other", round, got)
		}
	}
	x.written(ownerNamed(t, kinds, reading, "widget", "self", "30", "Widget", "self"))
	if x.get(workload.Key{Kind: "widget", Namespace: "shop", Name: "self"}).Runs != (workload.Key{}) {
		t.Error("an owner of itself is rolled through itself")
	}
}
