package workload

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAHoldIsOneLineAndWhatAsksForARollIsShort(t *testing.T) {
	annotations := map[string]string{events.AnnotationHold: "tofu\napply", AnnotationRollNow: strings.Repeat("1", maxRollNow+1)}
	w := readAs(t, deployments, webDeployment("50", annotations), Reading{})
	if problems := fmt.Sprint(w.Problems); w.Hold != "tofu apply" || w.RollsNow() || !strings.Contains(problems, "is longer than 128 bytes") {
		t.Errorf("on hold %q, rolls now %t, with the problems %s", w.Hold, w.RollsNow(), problems)
	}
}

func TestARollRecordsThatItWasAskedFor(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "w", Annotations: map[string]string{events.AnnotationHold: "tofu apply", AnnotationRollNow: "1"},
	}
	for _, kind := range BuiltIn() {
		t.Run(kind.Name, func(t *testing.T) {
			f := newFenced(t, kind, everyKind(meta, corev1.PodTemplateSpec{})[kind.Name])
			testkit.Must(t, f.send(f.patchOf(f.read(), "1", Write{})))
			if !f.read().RollsNow() {
				t.Fatal("a patch that only records takes it for done")
			}
			earlier := f.patchOf(f.read(), "2", Write{Rolls: true})
			testkit.Must(t, f.send(earlier))
			if f.read().RollsNow() {
				t.Error("the same value has it rolled again")
			}
			if again := f.patchOf(f.read(), "3", Write{Rolls: true}); strings.Contains(string(again.Body), "rolled-now") {
				t.Errorf("the next roll writes it again: %s", again.Body)
			}
			if err := f.send(earlier); err == nil {
				t.Error("the patch is applied twice")
			}
		})
	}
}

func TestARollIsRefusedOnceTheWorkloadIsOnHold(t *testing.T) {
	hold := map[string]string{AnnotationRollOn: "auto", events.AnnotationHold: "tofu apply"}
	read := newFenced(t, deployments, webDeployment("50", rollOn("auto"))).read()
	f := newFenced(t, deployments, webDeployment("50", hold))
	if err := f.send(f.patchOf(read, "100", Write{Rolls: true})); err == nil || f.read().Revision != "" {
		t.Errorf("it is rolled: %v", err)
	}
	if err := f.send(f.patchOf(read, "100", Write{})); err != nil {
		t.Errorf("nothing is recorded on it: %v", err)
	}
	empty := newFenced(t, deployments, webDeployment("50", map[string]string{AnnotationRollOn: "auto", events.AnnotationHold: ""}))
	if err := empty.send(empty.patchOf(empty.read(), "100", Write{Rolls: true})); err != nil {
		t.Errorf("it is not rolled with an empty value: %v", err)
	}
}

// Each is annotated by someone else, at another time.
func TestARolloutAndItsDeploymentAreAskedForRollsOneByOne(t *testing.T) {
	none := ""
	tests := []struct {
		name, deployment, rollout, done string
		want                            bool
		record                          string
	}{
		{"the Rollout asks beside a used one of the Deployment", "1", "2", "1", true, `["1","2"]`},
		{"both were used", "1", "2", `["1","2"]`, false, none},
		{"the used one of the Deployment is taken off", none, "2", `["1","2"]`, false, none},
		{"the Rollout asks again", "1", "3", `["1","2"]`, true, `["1","3"]`},
		{"one value that looks like several", `["1"]`, none, `["1"]`, false, none},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runner := runnerOf(t, fmt.Sprintf(`{"keyturn.dev/roll-now":%q}`, test.rollout), `{}`, Reading{})
			w := scaledDown(t, map[string]string{AnnotationRollNow: test.deployment, annotationRolledNow: test.done}, Reading{}).RunBy(runner)
			if w.RollsNow() != test.want {
				t.Fatalf("it rolls now: %t, want %t", w.RollsNow(), test.want)
			}
			if test.want && w.now.text() != test.record {
				t.Errorf("it records %s, want %s", w.now.text(), test.record)
			}
			if again := w.RunBy(runner); again.RollsNow() != test.want || len(again.now) != len(w.now) {
				t.Errorf("read once more, it asks for %v, want %v", again.now, w.now)
			}
		})
	}
}

func TestWhatARolloutSaysOfTimeCountsForTheDeploymentThatItRuns(t *testing.T) {
	runner := runnerOf(t, `{"keyturn.dev/hold":"tofu apply","keyturn.dev/roll-now":"1","keyturn.dev/window":"0 1 * * * for 3h"}`, `{}`, Reading{})
	w := scaledDown(t, rollOn("auto"), Reading{}).RunBy(runner)
	if w.Hold != "tofu apply" || !w.RollsNow() || w.Windows() != "0 1 * * * for 3h" {
		t.Errorf("on hold %q, rolls now %t, in the windows %s", w.Hold, w.RollsNow(), w.Windows())
	}
	if got := scaledDown(t, map[string]string{AnnotationWindow: "always"}, Reading{}).RunBy(runner).Windows(); got != "always" {
		t.Errorf("with a window of its own: got %q", got)
	}
	if back := w.RunBy(); back.Hold != "" || back.RollsNow() {
		t.Errorf("without the Rollout: on hold %q, rolls now %t", back.Hold, back.RollsNow())
	}
}
