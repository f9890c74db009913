package main

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func seen(name string, generation, observed int64) *appsv1.Deployment {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bench-0", Name: name, Generation: generation},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: observed},
	}
	deployment.Spec.Template.Annotations = map[string]string{"generation": strconv.FormatInt(generation, 10)}
	return deployment
}

func newTestObserver() *observer {
	o := makeObserver(patience)
	start := time.Now()
	o.see(seen("a", 1, 1), start)
	o.see(seen("b", 4, 4), start)
	return o
}

func TestUntilTheLastOneIsPatched(t *testing.T) {
	o := newTestObserver()
	start := time.Now()
	w := o.expect([]string{"bench-0/a", "bench-0/b"})
	o.see(seen("a", 2, 1), start.Add(time.Second))
	o.see(seen("b", 4, 4), start.Add(2*time.Second)) // its status only
	o.see(seen("b", 5, 4), start.Add(3*time.Second))
	o.see(seen("b", 5, 5), start.Add(4*time.Second))
	took, err := o.until(t.Context(), w, start)
	if err != nil || took != 3*time.Second {
		t.Errorf("took %s, %v; want 3s", took, err)
	}
}

func TestUntilTheLastOneIsRolledOut(t *testing.T) {
	o := makeObserver(patience)
	start := time.Now()
	o.see(withPod(1, 1, 1, 1, 1), start)
	w := o.expectRollouts([]string{"bench-0/a"})
	for i, state := range []*appsv1.Deployment{
		withPod(1, 1, 1, 1, 1), // not patched yet
		withPod(2, 1, 1, 1, 1),
		withPod(2, 2, 1, 2, 1),
		withPod(2, 2, 1, 1, 1),
		withPod(2, 2, 1, 1, 1),
	} {
		o.see(state, start.Add(time.Duration(i)*time.Second))
	}
	took, err := o.until(t.Context(), w, start)
	if err != nil || took != 3*time.Second {
		t.Errorf("took %s, %v; want 3s", took, err)
	}
}

func TestWhatWasNotRolledOutIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := makeObserver(time.Hour)
		o.see(withPod(1, 1, 1, 1, 1), time.Now())
		w := o.expectRollouts([]string{"bench-0/a"})
		o.see(withPod(2, 2, 1, 2, 1), time.Now())
		start := time.Now()
		_, err := o.until(t.Context(), w, start)
		if err == nil || !strings.Contains(err.Error(), "1 of 1 deployments were not patched and rolled out") {
			t.Errorf("%v, want that it was not rolled out", err)
		}
		if waited := time.Since(start); waited != time.Hour {
			t.Errorf("it was waited for for %s", waited)
		}
	})
}

func TestQuiet(t *testing.T) {
	for _, tt := range []struct {
		name       string
		generation int64
		ok         bool
	}{
		{name: "a Deployment that was patched once", generation: 2, ok: true},
		{name: "one that was patched twice", generation: 3},
		{name: "one that was not patched", generation: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTestObserver()
			w := o.expect([]string{"bench-0/a"})
			for generation := range tt.generation {
				o.see(seen("a", generation+1, generation+1), time.Now())
			}
			if err := o.quiet(t.Context(), w); (err == nil) != tt.ok {
				t.Error(err)
			}
		})
	}
}

func TestRecorded(t *testing.T) {
	o := newTestObserver()
	for _, name := range []string{"a", "b"} {
		if len(o.unrecorded) == 0 {
			t.Errorf("%s is not waited for", name)
		}
		deployment := seen(name, 5, 5)
		deployment.Annotations = map[string]string{annotationRecord: "{}"}
		o.see(deployment, time.Now())
	}
	if err := o.recorded(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestControllersDone(t *testing.T) {
	o := newTestObserver()
	for _, step := range []struct {
		state *appsv1.Deployment
		want  bool
	}{
		{seen("a", 1, 1), true},
		{seen("a", 2, 1), false},
		{seen("a", 2, 2), true},
	} {
		o.see(step.state, time.Now())
		if done, err := o.controllersDone(); err != nil || done != step.want {
			t.Errorf("generation %d, observed %d: %v, %v; want %v", step.state.Generation, step.state.Status.ObservedGeneration, done, err, step.want)
		}
	}
}

func TestFloorTwin(t *testing.T) {
	if got := floorTwin(secretName(contenderKeyturn, "00012")); got != secretName(contenderFloor, "00012") {
		t.Errorf("got %s", got)
	}
}
