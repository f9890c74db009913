package inventory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// runnerOf returns a Rollout that runs the pods of a Deployment, at a resourceVersion.
func runnerOf(t *testing.T, version, deployment, phase string) *workload.Workload {
	t.Helper()
	return readAs(t, workload.ArgoRollout(), &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": "edge", "namespace": "shop", "uid": "uid-edge", "resourceVersion": version,
			"annotations": map[string]any{workload.AnnotationRollOn: "secret/db"},
		},
		"spec":   map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": deployment}},
		"status": map[string]any{"phase": phase, "observedGeneration": "0", "workloadObservedGeneration": "99"},
	}}, workload.Reading{})
}

// scaledDown returns the Deployment web without pods of its own.
func scaledDown(t *testing.T, version string) *workload.Workload {
	t.Helper()
	deployment := webDeployment(version, nil)
	deployment.Spec.Replicas = new(int32)
	return readAs(t, deployments, deployment, workload.Reading{})
}

func TestADeploymentFollowsTheRolloutThatRunsItsPods(t *testing.T) {
	web := scaledDown(t, "10")
	key := web.Key()
	changed := make(map[workload.Key]int)
	for _, order := range []string{"the Deployment first", "the Rollout first"} {
		t.Run(order, func(t *testing.T) {
			x := indexWith(workload.Reading{}, func(key workload.Key) { changed[key]++ }, unlinked)
			if order == "the Deployment first" {
				x.Listed(web, "")
			}
			x.Written(runnerOf(t, "20", "web", "Paused"))
			if order == "the Rollout first" {
				x.Listed(web, "")
			}
			wantOnly := func(what string, state workload.State, dependents ...workload.Key) {
				t.Helper()
				wantDependents(t, x, what, dependents...)
				if got := x.Get(key).Progress.State; got != state {
					t.Errorf("%s: it is in state %d, want %d", what, got, state)
				}
			}
			wantOnly("while it runs the pods", workload.Waiting, key)
			before := changed[key]
			x.Written(runnerOf(t, "21", "web", "Degraded"))
			wantOnly("when it has failed", workload.Failed, key)
			if changed[key] == before {
				t.Error("nobody looks at the Deployment when the Rollout has changed")
			}
			x.Written(scaledDown(t, "22"))
			wantOnly("when the Deployment has changed, too", workload.Failed, key)

			x.Written(runnerOf(t, "23", "other", "Degraded"))
			wantOnly("when it runs the pods of another", web.Progress.State)
			x.Written(runnerOf(t, "24", "web", "Degraded"))
			x.Forget(workload.Key{Kind: "rollout", Namespace: "shop", Name: "edge"}, "uid-edge", "")
			wantOnly("when it is gone", web.Progress.State)
		})
	}
}

func TestWhatRunsThePodsOfADeploymentIsKnownWhileItsKindIsServed(t *testing.T) {
	web := scaledDown(t, "10")
	x := indexOf(web, runnerOf(t, "20", "web", "Paused"))
	rollouts := Place{Kind: "rollout"}
	want := func(when string, unserved bool) {
		t.Helper()
		if got := x.IsUnserved(web.Key(), written); got != unserved || len(x.Dependents(db)) != 1 {
			t.Errorf("%s, nobody knows what became of it: %t, want %t; there are %d dependents, want it", when, got, unserved, len(x.Dependents(db)))
		}
	}
	want("at first", false)
	x.Unserve(rollouts, "25", written)
	want("while the kind of its Rollout is not served", true)
	x.Serve(rollouts, "30", false)
	want("when it is served again", false)
}

// targetsFile has two kinds of custom resources, of which one may own the other.
const targetsFile = `targets:
- {apiVersion: example.org/v1, kind: Widget, resource: widgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
- {apiVersion: example.org/v1, kind: Gadget, resource: gadgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
`

// targetsOf returns the kinds that are built in, and those of targetsFile.
func targetsOf(t *testing.T) (workload.Kinds, workload.Reading) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "targets.yaml")
	testkit.Must(t, os.WriteFile(file, []byte(targetsFile), 0o600))
	targets, err := workload.ReadTargets(file)
	testkit.Must(t, err)
	kinds := append(workload.BuiltIn(), targets...)
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
	return readAs(t, k, object, reading)
}

func wantDependents(t *testing.T, x *Index, what string, want ...workload.Key) {
	t.Helper()
	var found []workload.Key
	for _, w := range x.Dependents(db) {
		found = append(found, w.Key())
	}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("%s: dependents are %v, want %v", what, found, want)
	}
}

func TestWhatAConfiguredKindOwnsIsRolledThroughTheOutermostOwner(t *testing.T) {
	kinds, reading := targetsOf(t)
	x := indexWith(reading, func(workload.Key) {}, unlinked)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Name: "web-0", Namespace: "shop", UID: "uid-set", ResourceVersion: "10",
		Annotations:     map[string]string{workload.AnnotationRollOn: "secret/db"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Gadget", Name: "web", Controller: new(true)}},
	}}
	statefulSets, _ := kinds.Named("statefulset")
	owned := readAs(t, statefulSets, set, reading)
	x.Written(owned)
	wantDependents(t, x, "before its controller is known", owned.Key())
	gadget := ownerNamed(t, kinds, reading, "gadget", "web", "11", "Widget", "all")
	x.Written(gadget)
	wantDependents(t, x, "before the outermost one is known", gadget.Key())
	widget := ownerNamed(t, kinds, reading, "widget", "all", "12", "", "")
	x.Written(widget)
	wantDependents(t, x, "when all are known", widget.Key())

	x.Written(ownerNamed(t, kinds, reading, "gadget", "web", "13", "", ""))
	got := make(map[workload.Key]bool)
	for _, w := range x.Dependents(db) {
		got[w.Key()] = true
	}
	if len(got) != 2 || !got[gadget.Key()] || !got[widget.Key()] {
		t.Errorf("when one is on its own: dependents are %v, want both kinds", got)
	}
	x.Forget(gadget.Key(), "uid-1", "")
	x.Forget(widget.Key(), "uid-1", "")
	wantDependents(t, x, "when the owners are gone", owned.Key())
	x.Written(gadget)
	wantDependents(t, x, "when its controller is back", gadget.Key())
}

func TestWhatOwnsAWorkloadAndIsGoneHandsOverWhatHasChangedSince(t *testing.T) {
	kinds, reading := targetsOf(t)
	var relinked []workload.Key
	x := indexWith(reading, func(workload.Key) {}, func(key workload.Key) { relinked = append(relinked, key) })
	x.options.Met = func(w *workload.Workload) { t.Errorf("%v was known before", w.Key()) }
	gadget := ownerNamed(t, kinds, reading, "gadget", "web", "10", "Widget", "all")
	widget := ownerNamed(t, kinds, reading, "widget", "all", "11", "", "")
	x.Listed(gadget, "")
	x.Listed(widget, "")
	wantDependents(t, x, "at first", widget.Key())
	k, _ := kinds.Named("widget")
	store := &kindStore{Index: x, kind: k, lists: kube.NewFirstLists(), seen: "20"}
	store.unserve(written)
	if owner := x.Get(gadget.Key()).Runs; owner != (workload.Key{}) {
		t.Errorf("when the kind of the owner is not served any more, it is rolled through %v", owner)
	}
	if link, linked := x.Get(gadget.Key()).Link(db); !linked || link.Version != "20" || !slices.Contains(relinked, gadget.Key()) {
		t.Errorf("secret/db: got %v, %t, told of %v, want that it is linked since version 20", link, linked, relinked)
	}
	store.Replace(t.Context(), []*workload.Workload{widget}, "30")
	if x.IsUnserved(widget.Key(), written) {
		t.Error("when the kind is served again, nobody knows that")
	}
	if !slices.Contains(relinked, widget.Key()) {
		t.Errorf("when the kind is served again, %v are looked at, want its workload, too", relinked)
	}
	wantDependents(t, x, "when the kind is served again", widget.Key())
}

func TestOwnersInACircleEndNowhere(t *testing.T) {
	kinds, reading := targetsOf(t)
	x := indexWith(reading, func(workload.Key) {}, unlinked)
	for round := range 3 {
		for i, kind := range []string{"widget", "gadget"} {
			owner := map[string]string{"widget": "Gadget", "gadget": "Widget"}[kind]
			x.Written(ownerNamed(t, kinds, reading, kind, "web", fmt.Sprint(10+2*round+i), owner, "web"))
		}
		if got := len(x.Dependents(db)); got != 1 {
			t.Errorf("round %d: got %d dependents, want the one that owns itself only through the other", round, got)
		}
	}
	x.Written(ownerNamed(t, kinds, reading, "widget", "self", "30", "Widget", "self"))
	if x.Get(workload.Key{Kind: "widget", Namespace: "shop", Name: "self"}).Runs != (workload.Key{}) {
		t.Error("an owner of itself is rolled through itself")
	}
}
