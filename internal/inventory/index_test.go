package inventory

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// at returns the workload web at a resourceVersion, with a template that differs with the letter.
func at(t *testing.T, version string, template byte) *workload.Workload {
	t.Helper()
	deployment := webDeployment(version, rollOn("auto"))
	deployment.Spec.Template.Spec.Containers[0].Image = string(template)
	return readAs(t, deployments, deployment, workload.Reading{})
}

func TestARecordThatSomeoneRemovesIsKnownForAsLongAsTheWorkload(t *testing.T) {
	x := indexOf()
	// read returns the workload web at a resourceVersion, with a record that the actuator wrote, or without one.
	read := func(version string, recorded bool) *workload.Workload {
		deployment, fields := webDeployment(version, rollOn("auto")), "{}"
		if recorded {
			deployment.Annotations["keyturn.dev/rolled"] = `{"secret/db":"k1:a@5/u"}`
			fields = `{"f:metadata":{"f:annotations":{"f:keyturn.dev/rolled":{}}}}`
		}
		deployment.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: workload.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(fields),
		}}
		return readAs(t, deployments, deployment, workload.Reading{})
	}
	want := func(when, version string) {
		t.Helper()
		w := x.Get(workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"})
		if got := w.Rolled["secret/db"].Version; got != version || w.IsRecordLost() != (version != "") {
			t.Errorf("%s, the record has version %q, lost: %t; want %q", when, got, w.IsRecordLost(), version)
		}
	}
	x.Listed(read("10", true), "")
	x.Written(read("11", false))
	want("when a watch shows that it is removed", "5")
	x.Written(read("9", true))
	want("when a watch shows an older state", "5")
	x.Listed(read("12", false), "11")
	want("when a list shows that it is removed", "5")
	x.Written(runnerOf(t, "13", "web", "Paused"))
	want("when a Rollout runs the pods", "5")
	x.Unserve(Place{Kind: "deployment"}, "13", written)
	x.Serve(Place{Kind: "deployment"}, "13", false)
	want("when its kind is served again", "5")
	x.Forget(workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}, "w", "14")
	x.Listed(read("15", false), "14")
	want("when it was gone", "")
}

func TestTheAnswerToAPatchIsNotTakenForMoreThanItIs(t *testing.T) {
	tests := []struct {
		name      string
		known     *workload.Workload // nil: none
		answer    *workload.Workload
		templated bool
		version   string // empty: there is none
		template  string
	}{
		{
			name: "a patch of the template says when it changed", known: at(t, "10", 'a'),
			answer: at(t, "20", 'b'), templated: true, version: "20", template: "20",
		},
		{
			name: "a patch of the metadata says nothing of the template that it found", known: at(t, "10", 'a'),
			answer: at(t, "20", 'b'), version: "20", template: "",
		},
		{
			name: "an answer that the watch was faster than is dropped", known: at(t, "30", 'c'),
			answer: at(t, "20", 'b'), templated: true, version: "30", template: "30",
		},
		{name: "a workload that is gone does not come back", answer: at(t, "20", 'b'), templated: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			told := 0
			x := indexWith(workload.Reading{}, func(workload.Key) { told++ }, unlinked)
			if test.known != nil {
				x.Written(test.known)
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

func TestALaterListTellsSinceWhenAWorkloadMayWantASource(t *testing.T) {
	relinked := 0
	x := indexWith(workload.Reading{}, func(workload.Key) {}, func(workload.Key) { relinked++ })
	store := kube.StoreOf[*workload.Workload](t.Context(), &kindStore{Index: x, kind: deployments, lists: kube.NewFirstLists()})
	list := func(version string, objects ...any) {
		t.Helper()
		testkit.Must(t, store.Replace(objects, version))
	}
	list("20", webDeployment("10", map[string]string{"team": "a"}))
	testkit.Must(t, store.Update(webDeployment("25", map[string]string{"team": "b"})))
	list("50", webDeployment("40", rollOn("auto")))
	link, ok := x.Get(workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}).Link(db)
	if !ok || link.Version != "25" || relinked != 1 {
		t.Errorf("got %+v (%t), told %d times, want that it is since 25 at the earliest", link, ok, relinked)
	}
}

func TestIndexFindsWhatReadsASecretStore(t *testing.T) {
	db := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}
	inTeam := db
	inTeam.Namespace = "team-a"
	colon := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "a:b"}
	colonMount := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "kv:2", Path: "a:b"}
	agent := func(path string) map[string]string {
		return map[string]string{"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/agent-inject-secret-a": path}
	}
	tests := []struct {
		name     string
		workload map[string]string
		template map[string]string
		rollAll  bool
		path     events.StorePath
		want     bool
	}{
		{name: "a path that roll-on names", workload: rollOn("openbao:secret/shop/db"), path: db, want: true},
		{name: "the path in another namespace", workload: rollOn("openbao:secret/shop/db"), path: inTeam},
		{name: "a path in a namespace", workload: rollOn("openbao:team-a/secret/shop/db"), path: inTeam, want: true},
		{name: "a pattern, whose star goes over slashes", workload: rollOn("openbao:secret/*"), path: db, want: true},
		{name: "a path in its store", workload: rollOn("openbao:bao:secret/shop/db"), path: db, want: true},
		{name: "a path by both of its names and a pattern", workload: rollOn("openbao:secret/shop/db, openbao:secret/data/shop/db, openbao:secret/*"), path: db, want: true},
		{name: "a path in another store", workload: rollOn("openbao:dev:secret/shop/db"), path: db},
		{name: "a pattern in its store", workload: rollOn("openbao:bao:secret/*"), path: db, want: true},
		{name: "an exclusion of its store", workload: rollOn("openbao:secret/*, !openbao:bao:*"), path: db},
		{name: "a path with a colon, in its store", workload: rollOn("openbao:bao:secret/a:b"), path: colon, want: true},
		{name: "a mount with a colon, in its store", workload: rollOn("openbao:bao:kv:2/a:b"), path: colonMount, want: true},
		{name: "a mount with a colon, whose first part is taken for a store", workload: rollOn("openbao:kv:2/a:b"), path: colonMount},
		{name: "what an agent injects, with auto", workload: rollOn("auto"), template: agent("secret/data/shop/db"), path: db, want: true},
		{name: "what an agent injects, with secrets", workload: rollOn("secrets"), template: agent("secret/data/shop/db"), path: db},
		{name: "what an agent injects, with Reloader's auto", workload: map[string]string{"reloader.stakater.com/auto": "true"}, template: agent("secret/data/shop/db"), path: db},
		{name: "what an agent injects, with all", rollAll: true, template: agent("secret/data/shop/db"), path: db, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := indexWith(workload.Reading{All: tt.rollAll}, func(workload.Key) {}, unlinked)
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "1", Annotations: tt.workload,
			}}
			deployment.Spec.Template.Annotations = tt.template
			w := readAs(t, deployments, deployment, workload.Reading{All: tt.rollAll, Stores: everyStore})
			x.Written(w)
			source := tt.path.Source()
			found := x.Dependents(source)
			rolls := slices.ContainsFunc(found, func(w *workload.Workload) bool {
				return w.OptIn.Wants(source, w.Reference(source), false).Wanted()
			})
			if len(found) > 1 {
				t.Errorf("it is listed %d times, want once", len(found))
			}
			if rolls != tt.want {
				t.Errorf("rolls: %t, want %t", rolls, tt.want)
			}
			x.Forget(w.Key(), "u", "")
			if len(x.Dependents(source)) > 0 || len(x.bySource) > 0 || len(x.byPattern) > 0 {
				t.Error("the index keeps a workload that is gone")
			}
		})
	}
}

// rolled returns the Deployment web without pods of its own, whose last roll wrote the revision r1.
func rolled(t *testing.T) *workload.Workload {
	t.Helper()
	deployment := webDeployment("10", map[string]string{"keyturn.dev/last": `{"rev":"r1","at":"2026-03-14T15:09:26Z","was":"ok"}`})
	deployment.Spec.Replicas = new(int32)
	deployment.Spec.Template.Annotations = map[string]string{"keyturn.dev/revision": "r1"}
	return readAs(t, deployments, deployment, workload.Reading{})
}

func TestARollThatARolloutCarriesOutIsNotOverBecauseTheDeploymentIsListedFirst(t *testing.T) {
	for _, order := range []string{"the Deployment first", "the Rollout first"} {
		list := []*workload.Workload{rolled(t), runnerOf(t, "20", "web", "Degraded")}
		if order == "the Rollout first" {
			slices.Reverse(list)
		}
		w := indexOf(list...).Get(workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"})
		if !w.IsRolling() || w.FailsBefore() {
			t.Errorf("%s: it is rolling: %t, and fails before the next roll: %t; want that its own roll fails", order, w.IsRolling(), w.FailsBefore())
		}
	}
}

// As a new leader does with what the last outcome says.
func TestTheEndOfARollThatARolloutCarriesOutIsKept(t *testing.T) {
	x, key := indexOf(runnerOf(t, "20", "web", "Degraded"), rolled(t)), workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}
	x.Keep(key, func(known *workload.Workload) *workload.Workload { return known.Completed("r1") })
	for _, when := range []string{"at once", "when the Rollout has changed since"} {
		if w := x.Get(key); w.IsRolling() || !w.FailsBefore() || w.Progress.State != workload.Failed {
			t.Errorf("%s: it is rolling: %t, fails before the next roll: %t, and is in state %d", when, w.IsRolling(), w.FailsBefore(), w.Progress.State)
		}
		x.Written(runnerOf(t, "21", "web", "Degraded"))
	}
}
