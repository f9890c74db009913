package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// progressIn returns the progress of an object of a kind.
func progressIn(k Kind, object runtime.Object) Progress {
	p, _ := k.read(object)
	return p.progress
}

func TestProgressIsWhatTheStatusSays(t *testing.T) {
	meta := metav1.ObjectMeta{Generation: 2}
	failed := []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "too slow",
	}}
	// The counts are of pods: all, updated ones, and available ones.
	deployment := func(wanted int32, observed int64, counts [3]int32, conditions ...appsv1.DeploymentCondition) Progress {
		return progressIn(deployments, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &wanted}, Status: appsv1.DeploymentStatus{
			ObservedGeneration: observed, Replicas: counts[0], UpdatedReplicas: counts[1], AvailableReplicas: counts[2], Conditions: conditions,
		}})
	}
	set := func(wanted, partition int32, counts [3]int32) Progress {
		rolling := &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
		spec := appsv1.StatefulSetSpec{Replicas: &wanted, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{RollingUpdate: rolling}}
		return progressIn(statefulSets, &appsv1.StatefulSet{ObjectMeta: meta, Spec: spec, Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 2, Replicas: counts[0], UpdatedReplicas: counts[1], ReadyReplicas: counts[0], AvailableReplicas: counts[2],
		}})
	}
	daemons := func(updated, available int32) Progress {
		return progressIn(daemonSets, &appsv1.DaemonSet{ObjectMeta: meta, Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: updated, NumberAvailable: available,
		}})
	}
	paused := progressIn(deployments, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Paused: true}})
	three := int32(3)
	onDelete := progressIn(statefulSets, &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec:       appsv1.StatefulSetSpec{Replicas: &three, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}},
		Status:     appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3},
	})
	tests := []struct {
		name string
		got  Progress
		want State
	}{
		{"a Deployment whose controller has not looked", deployment(3, 1, [3]int32{3, 3, 3}), Progressing},
		{"a Deployment with old pods", deployment(3, 2, [3]int32{4, 3, 4}), Progressing},
		{"a Deployment that is done", deployment(3, 2, [3]int32{3, 3, 3}), Complete},
		{"a Deployment whose controller has given up", deployment(3, 2, [3]int32{}, failed...), Failed},
		{"a Deployment that is paused", paused, Waiting},
		{"a StatefulSet with old pods", set(3, 0, [3]int32{3, 2, 3}), Progressing},
		{"a StatefulSet that is done", set(3, 0, [3]int32{3, 3, 3}), Complete},
		{"a StatefulSet that is done above its partition", set(3, 2, [3]int32{3, 1, 3}), Complete},
		{"a StatefulSet that is scaled down while pods are replaced", set(1, 0, [3]int32{3, 2, 3}), Progressing},
		{"a StatefulSet whose pods are replaced when they are deleted", onDelete, Waiting},
		{"a DaemonSet with old pods", daemons(1, 2), Progressing},
		{"a DaemonSet that is done", daemons(2, 2), Complete},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.got.State != test.want {
				t.Errorf("got state %d (%s), want %d", test.got.State, test.got.Message, test.want)
			}
		})
	}
}

func TestAStatefulSetThatWaitsForAPodSaysWhichOneToDelete(t *testing.T) {
	const remedy = " is not ready, and the StatefulSet replaces no pod before it is, not even that one: remove the cause, then delete the pod"
	tests := []struct {
		name string
		// The counts are of pods: all of three, updated ones, and ready ones.
		all, updated, ready int32
		alter               func(*appsv1.StatefulSetSpec)
		want                string
	}{
		{"the second pod that was replaced is not ready", 3, 2, 2, nil, "pod db-1" + remedy},
		{"the pods are numbered from five", 3, 1, 2, func(s *appsv1.StatefulSetSpec) { s.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5} }, "pod db-7" + remedy},
		{"a partition keeps some", 3, 1, 2, func(s *appsv1.StatefulSetSpec) { s.UpdateStrategy.RollingUpdate.Partition = new(int32(2)) }, "pod db-2" + remedy},
		{"a pod of before is not ready", 3, 0, 2, nil, "a pod" + remedy},
		{"two are replaced at a time", 3, 2, 2, func(s *appsv1.StatefulSetSpec) {
			s.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(2))
		}, "a pod" + remedy},
		{"all are ready", 3, 2, 3, nil, ""},
		{"a pod cannot be created", 2, 2, 2, nil, ""},
		{"all pods come at once", 3, 2, 2, func(s *appsv1.StatefulSetSpec) { s.PodManagementPolicy = appsv1.ParallelPodManagement }, ""},
		{"people delete the pods", 3, 2, 2, func(s *appsv1.StatefulSetSpec) { s.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Status: appsv1.StatefulSetStatus{
				Replicas: tt.all, UpdatedReplicas: tt.updated, ReadyReplicas: tt.ready, AvailableReplicas: tt.ready,
			}}
			set.Spec.Replicas, set.Spec.UpdateStrategy.RollingUpdate = new(int32(3)), &appsv1.RollingUpdateStatefulSetStrategy{}
			if tt.alter != nil {
				tt.alter(&set.Spec)
			}
			if got := progressIn(statefulSets, set).Remedy; got != tt.want {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		})
	}
}

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
		{"one pod is available, and none is of an earlier template", state{2, 2, 3, 3, 1}, "50"},
		{"no pod is available", state{2, 2, 3, 3, 0}, ""},
		{"pods of an earlier template are left", state{2, 2, 4, 3, 3}, ""},
		{"the controller has not observed the change yet", state{2, 1, 3, 3, 3}, ""},
	}
	for _, test := range tests {
		if got := readAs(t, deployments, test.deployment(), Reading{}).ServingSince; got != test.want {
			t.Errorf("%s: it serves since %q, want %q", test.name, got, test.want)
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

func TestPodsThatAreNotReadyAreNoRollout(t *testing.T) {
	three := int32(3)
	available := func(reason string) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: reason}}
	}
	refused := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate"}
	// The counts are of pods: all of three, updated ones, and of a StatefulSet ready ones.
	deployment := func(all, updated int32, reason string, more ...appsv1.DeploymentCondition) Progress {
		return progressIn(deployments, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &three}, Status: appsv1.DeploymentStatus{
			Replicas: all, UpdatedReplicas: updated, AvailableReplicas: min(all, 2), Conditions: append(available(reason), more...),
		}})
	}
	set := func(all, updated, ready int32, current string) Progress {
		return progressIn(statefulSets, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &three}, Status: appsv1.StatefulSetStatus{
			Replicas: all, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: ready, CurrentRevision: current, UpdateRevision: "b",
		}})
	}
	rollout := func(stable, updated string) Progress {
		return readRollout(t, `{"replicas":3}`, `{"observedGeneration":"2","phase":"Progressing","stableRS":"`+stable+`","currentPodHash":"b","replicas":3,`+
			`"updatedReplicas":`+updated+`,"availableReplicas":2}`).Progress
	}
	tests := []struct {
		name string
		got  Progress
		want bool
	}{
		{"a Deployment whose rollout was complete", deployment(3, 3, "NewReplicaSetAvailable"), true},
		{"a Deployment whose rollout goes on", deployment(3, 3, "ReplicaSetUpdated"), false},
		{"a Deployment whose pods are gone, and cannot be created", deployment(0, 0, "NewReplicaSetAvailable", refused), true},
		{"a Deployment whose strategy Recreate waits for the end of old pods", deployment(0, 0, "NewReplicaSetAvailable"), false},
		{"a Deployment whose first pods cannot be created", deployment(0, 0, "ReplicaSetUpdated", refused), false},
		{"a Deployment that is put back, with pods to replace", deployment(3, 1, "NewReplicaSetAvailable"), false},
		{"a StatefulSet whose rollout was complete", set(3, 3, 2, "b"), true},
		{"a StatefulSet whose rollout goes on", set(3, 3, 2, "a"), false},
		{"a new StatefulSet, of which the second pod waits for the first", set(1, 1, 0, "b"), true},
		{"a StatefulSet that is put back, with a pod to replace", set(3, 2, 2, "b"), false},
		{"a Rollout that was promoted", rollout("b", "3"), true},
		{"a Rollout that was not", rollout("a", "3"), false},
		{"two controllers, of which one rolls", deployment(3, 3, "NewReplicaSetAvailable").with(rollingOut), false},
	}
	for _, test := range tests {
		if test.got.State != Progressing || test.got.Unready != test.want {
			t.Errorf("%s: got state %d, unready %t, want state %d, %t", test.name, test.got.State, test.got.Unready, Progressing, test.want)
		}
	}
}
