package inventory

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestTheAnswerToAPatchIsNotTakenForMoreThanItIs(t *testing.T) {
	tests := []struct {
		name      string
		known     *workload.Workload // nil: none
		exact     bool
		answer    *workload.Workload
		templated bool
		version   string // empty: there is none
		template  string
	}{
		{
			name: "a patch of the template says when it changed", known: at(t, "10", 'a'), exact: true,
			answer: at(t, "20", 'b'), templated: true, version: "20", template: "20",
		},
		{
			name: "a patch of the metadata says nothing of the template that it found", known: at(t, "10", 'a'), exact: true,
			answer: at(t, "20", 'b'), version: "20", template: "",
		},
		{
			name: "nor does it take away what is known", known: at(t, "10", 'a'), exact: true,
			answer: at(t, "20", 'a'), version: "20", template: "10",
		},
		{
			name: "an answer that the watch was faster than is dropped", known: at(t, "30", 'c'), exact: true,
			answer: at(t, "20", 'b'), templated: true, version: "30", template: "30",
		},
		{name: "a workload that is gone does not come back", answer: at(t, "20", 'b'), templated: true},
		{
			name: "nor does one that has a successor", exact: true,
			known:  workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.ID.UID, w.Version = "successor", "10" }),
			answer: at(t, "20", 'b'), templated: true, version: "10", template: "10",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			told := 0
			x := indexWith(workload.Reading{}, func(workload.Key) { told++ }, unlinked)
			if test.known != nil {
				x.show(test.known, test.exact)
			}
			told = 0
			x.Answer(test.answer, test.templated)
			got := &workload.Workload{}
			if w := x.Get(test.answer.Key()); w != nil {
				got = w
			}
			if got.Version != test.version || got.TemplateVersion != test.template {
				t.Errorf("got version %q with the template of %q, want %q and %q", got.Version, got.TemplateVersion, test.version, test.template)
			}
			if taken := got == test.answer; taken != (told == 1) {
				t.Errorf("it was taken: %t, and reported %d times", taken, told)
			}
		})
	}
}

func TestTheIndexIsTheStoreOfAReflector(t *testing.T) {
	x := indexWith(workload.Reading{}, func(workload.Key) {}, unlinked)
	lists := kube.NewFirstLists()
	lists.Expect("deployments in namespace shop")
	store := kube.StoreOf[*workload.Workload](t.Context(), &kindStore{Index: x, kind: deployments, namespace: "shop", lists: lists})
	object := func(name, version string) *appsv1.Deployment {
		deployment := webDeployment(version, rollOn("auto"))
		deployment.Name = name
		return deployment
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(step string, wanted map[string]string) {
		t.Helper()
		got := make(map[string]string)
		for _, w := range x.All() {
			got[w.Key().Kind+" "+w.ID.Name] = w.Version + " " + w.TemplateVersion
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s: versions, of the workload and of its template (-want +got):\n%s", step, diff)
		}
	}
	transformed, err := store.Transformer()(object("listed", "10"))
	must(err)
	if _, ok := transformed.(*workload.Workload); !ok {
		t.Errorf("a list keeps a %T", transformed)
	}
	if pod, err := store.Transformer()(&corev1.Pod{}); err != nil || pod == nil {
		t.Errorf("what it does not know is not passed on: %v (%v)", pod, err)
	}
	// Other stores share the index.
	elsewhere := object("elsewhere", "1")
	elsewhere.Namespace = "bank"
	for _, sink := range []*kindStore{{Index: x, kind: deployments, namespace: "bank"}, {Index: x, kind: daemonSets, namespace: "shop"}} {
		other := kube.StoreOf[*workload.Workload](t.Context(), sink)
		must(other.Add(elsewhere))
		must(other.Add(&appsv1.DaemonSet{ObjectMeta: elsewhere.ObjectMeta}))
	}

	must(store.Replace([]any{transformed, object("as-it-is", "11"), &corev1.Pod{}}, "12"))
	others := map[string]string{"deployment elsewhere": "1 1", "daemonset elsewhere": "1 1"}
	both := func(more map[string]string) map[string]string {
		maps.Copy(more, others)
		return more
	}
	want("after the first list", both(map[string]string{"deployment listed": "10 ", "deployment as-it-is": "11 "}))

	must(store.Add(object("new", "13")))
	changed := object("listed", "14")
	changed.Spec.Template.Spec.Containers[0].Image = "app:2"
	must(store.Update(changed))
	must(store.Delete(object("as-it-is", "15")))
	must(store.Add(&corev1.Pod{}))
	must(store.Delete("no object"))
	want("after the watch", both(map[string]string{"deployment listed": "14 14", "deployment new": "13 13"}))

	must(store.Replace([]any{object("new", "16")}, "17"))
	must(store.Resync())
	want("after another list", both(map[string]string{"deployment new": "16 13"}))
	if err := lists.Ready(); err != nil {
		t.Errorf("the lists were not reported: %v", err)
	}
}

func TestALaterListTellsSinceWhenAWorkloadMayWantASource(t *testing.T) {
	relinked := 0
	x := indexWith(workload.Reading{}, func(workload.Key) {}, func(workload.Key) { relinked++ })
	store := kube.StoreOf[*workload.Workload](t.Context(), &kindStore{Index: x, kind: deployments})
	list := func(version string, objects ...any) {
		t.Helper()
		if err := store.Replace(objects, version); err != nil {
			t.Fatal(err)
		}
	}
	list("20", webDeployment("10", map[string]string{"team": "a"}))
	if err := store.Update(webDeployment("25", map[string]string{"team": "b"})); err != nil {
		t.Fatal(err)
	}
	list("50", webDeployment("40", rollOn("auto")))
	link, ok := x.Get(workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}).Link(db)
	if !ok || link.Version != "25" || relinked != 1 {
		t.Errorf("got %+v (%t), told %d times, want that it is since 25 at the earliest", link, ok, relinked)
	}
}
