package inventory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// at returns the workload web at a resourceVersion, with a template that differs with the letter.
func at(t *testing.T, version string, template byte) *workload.Workload {
	t.Helper()
	deployment := webDeployment(version, rollOn("auto"))
	deployment.Spec.Template.Spec.Containers[0].Image = string(template)
	return readAs(t, deployments, deployment, workload.Reading{})
}

// show records a state as a watch shows it, which is exact, or as the first list does.
func (x *Index) show(w *workload.Workload, exact bool) {
	if exact {
		x.Written(w)
	} else {
		x.Listed(w, "")
	}
}

func TestTheVersionOfTheTemplateIsThatOfTheWriteThatChangedIt(t *testing.T) {
	type step struct {
		version  string
		template byte
		exact    bool
	}
	tests := []struct {
		name  string
		steps []step
		want  string
	}{
		{"what a list shows first is not known", []step{{"10", 'a', false}}, ""},
		{"a write of the template that is watched is known", []step{{"10", 'a', false}, {"20", 'b', true}}, "20"},
		{"a write of something else leaves it", []step{{"10", 'a', true}, {"20", 'a', true}}, "10"},
		{"what a later list shows may be older than it says", []step{{"10", 'a', true}, {"20", 'b', false}}, ""},
		{"a state that is older than the one known is dropped", []step{{"20", 'b', true}, {"10", 'a', true}}, "20"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := indexWith(workload.Reading{}, func(workload.Key) {}, unlinked)
			for _, step := range test.steps {
				x.show(at(t, step.version, step.template), step.exact)
			}
			if got := x.Get(at(t, "", 0).Key()).TemplateVersion; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestARecordThatSomeoneRemovesIsKnownForAsLongAsTheWorkload(t *testing.T) {
	x := indexWith(workload.Reading{}, func(workload.Key) {}, unlinked)
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

// TestTheIndexAgreesWithAskingEveryWorkload compares the index with the plain answer, over random histories.
func TestTheIndexAgreesWithAskingEveryWorkload(t *testing.T) {
	annotations := []string{"auto", "secrets", "secret/a, configmap/b", "configmap/*", "auto, !secret/a", "none"}
	names, sourceKinds := []string{"a", "b", "c"}, []events.Kind{events.KindSecret, events.KindConfigMap}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		x := indexWith(workload.Reading{}, func(workload.Key) {}, unlinked)
		there := make(map[workload.Key]*workload.Workload)
		for version := range 200 {
			ref := workload.Reference{Kind: sourceKinds[random.IntN(len(sourceKinds))], Name: names[random.IntN(3)]}
			w := workloadOf(t, annotations[random.IntN(len(annotations))], ref, func(w *workload.Workload) {
				w.ID.Name, w.Version, w.Wave = names[random.IntN(3)], strconv.Itoa(version+1), random.IntN(2)
			})
			if random.IntN(4) == 0 {
				x.Forget(w.Key(), w.ID.UID, "")
				delete(there, w.Key())
			} else {
				x.Written(w)
				there[w.Key()] = w
			}
			for _, kind := range sourceKinds {
				for _, name := range names {
					source := events.Source{Kind: kind, Namespace: "shop", Name: name}
					var want, got []string
					for key, w := range there {
						if w.OptIn.Wants(source, w.Reference(source), true).Wanted() {
							want = append(want, key.Name)
						}
					}
					for _, w := range x.Dependents(source) {
						if w.OptIn.Wants(source, w.Reference(source), true).Wanted() {
							got = append(got, w.ID.Name)
						}
					}
					slices.Sort(want)
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Fatalf("seed %d, step %d: dependents of %s: got %v, want %v", seed, version, source, got, want)
					}
				}
			}
		}
		for key, w := range there {
			x.Forget(key, w.ID.UID, "")
		}
		if len(x.workloads)+len(x.bySource)+len(x.byPattern)+len(x.spaces)+len(x.waves) != 0 {
			t.Errorf("seed %d: left behind: %s", seed, fmt.Sprint(x.workloads, x.bySource, x.byPattern, x.spaces, x.waves))
		}
	}
}
