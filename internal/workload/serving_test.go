package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// state has the counts in the status of a workload.
type state struct {
	generation, observed     int64
	pods, updated, available int32
}

func (s state) deployment() *appsv1.Deployment {
	d := webDeployment("50", nil)
	d.Generation, d.Status = s.generation, appsv1.DeploymentStatus{
		ObservedGeneration: s.observed, Replicas: s.pods, UpdatedReplicas: s.updated, AvailableReplicas: s.available,
	}
	return d
}

func TestAWorkloadServesWithAvailablePodsOfItsTemplate(t *testing.T) {
	tests := []struct {
		name string
		state
		want string
	}{
		{"all pods are available", state{2, 2, 3, 3, 3}, "50"},
		{"one pod is available, and none is of an earlier template", state{2, 2, 3, 3, 1}, "50"},
		{"no pod is available", state{2, 2, 3, 3, 0}, ""},
		{"pods of an earlier template are left", state{2, 2, 4, 3, 3}, ""},
		{"the controller has not observed the change yet", state{2, 1, 3, 3, 3}, ""},
	}
	for _, test := range tests {
		s := test.state
		set, daemons := &appsv1.StatefulSet{}, &appsv1.DaemonSet{}
		set.ResourceVersion, daemons.ResourceVersion = "50", "50"
		set.Generation, set.Status = s.generation, appsv1.StatefulSetStatus{
			ObservedGeneration: s.observed, Replicas: s.pods, UpdatedReplicas: s.updated, AvailableReplicas: s.available,
		}
		daemons.Generation, daemons.Status = s.generation, appsv1.DaemonSetStatus{
			ObservedGeneration: s.observed, CurrentNumberScheduled: s.pods, UpdatedNumberScheduled: s.updated, NumberAvailable: s.available,
		}
		objects := map[string]runtime.Object{"deployment": s.deployment(), "statefulset": set, "daemonset": daemons}
		for name, object := range objects {
			t.Run(name+": "+test.name, func(t *testing.T) {
				k, _ := BuiltIn().Named(name)
				w, _ := Read(k, object, Reading{})
				if w.ServingSince != test.want {
					t.Errorf("it serves since %q, want %q", w.ServingSince, test.want)
				}
			})
		}
	}
}

func TestAWorkloadServesSinceTheFirstOfTheStatesInARow(t *testing.T) {
	read := func(version string, available int32, image string) *Workload {
		d := state{1, 1, 3, 3, available}.deployment()
		d.ResourceVersion, d.Spec.Template.Spec.Containers[0].Image = version, image
		w, _ := Read(deployments, d, Reading{})
		return w
	}
	annotated := state{2, 1, 3, 3, 3}.deployment()
	annotated.ResourceVersion = "50"
	unobserved, _ := Read(deployments, annotated, Reading{})
	tests := []struct {
		name          string
		earlier, then *Workload
		want          string
	}{
		{"it served before", read("40", 3, ""), read("50", 1, ""), "40"},
		{"it did not serve before", read("40", 0, ""), read("50", 1, ""), "50"},
		{"it serves no more", read("40", 3, ""), read("50", 0, ""), ""},
		{"it served with another template", read("40", 3, "app:1"), read("50", 3, "app:2"), "50"},
		{"its annotations were written, and its status is about the time before", read("40", 3, ""), unobserved, "40"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.then.After(test.earlier, true).ServingSince; got != test.want {
				t.Errorf("it serves since %q, want %q", got, test.want)
			}
		})
	}
}
