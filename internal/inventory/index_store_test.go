package inventory

import (
	"testing"

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
			name: "an answer that the watch was faster than is dropped", known: at(t, "30", 'c'), exact: true,
			answer: at(t, "20", 'b'), templated: true, version: "30", template: "30",
		},
		{name: "a workload that is gone does not come back", answer: at(t, "20", 'b'), templated: true},
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
