package main

import (
	"strconv"
	"testing"
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
		withPod(2, 1, 1, 1, 1), // the controller has not seen the patch
		withPod(2, 2, 0, 1, 1), // there is no new pod
		withPod(2, 2, 1, 2, 1), // the old pod is there, too
		withPod(2, 2, 1, 1, 0), // the new pod is not available
		withPod(2, 2, 1, 1, 1),
		withPod(2, 2, 1, 1, 1),
	} {
		o.see(state, start.Add(time.Duration(i)*time.Second))
	}
	took, err := o.until(t.Context(), w, start)
	if err != nil || took != 5*time.Second {
		t.Errorf("took %s, %v; want 5s", took, err)
	}
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
