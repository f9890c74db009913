package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProgressIsWhatTheStatusSays(t *testing.T) {
	three, none := int32(3), int32(0)
	meta := metav1.ObjectMeta{Generation: 2}
	one, partition := int32(1), int32(2)
	rolling := func(p *int32) appsv1.StatefulSetUpdateStrategy {
		return appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: p}}
	}
	failed := []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "too slow",
	}}
	onDelete := appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	deployment := func(spec appsv1.DeploymentSpec, status appsv1.DeploymentStatus) Progress {
		return deploymentProgress(&appsv1.Deployment{ObjectMeta: meta, Spec: spec, Status: status})
	}
	set := func(spec appsv1.StatefulSetSpec, status appsv1.StatefulSetStatus) Progress {
		return statefulSetProgress(&appsv1.StatefulSet{ObjectMeta: meta, Spec: spec, Status: status})
	}
	daemons := func(strategy appsv1.DaemonSetUpdateStrategyType, status appsv1.DaemonSetStatus) Progress {
		return daemonSetProgress(&appsv1.DaemonSet{
			ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: strategy}}, Status: status,
		})
	}
	tests := []struct {
		name string
		got  Progress
		want State
	}{
		{
			"a Deployment whose controller has not looked",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}),
			Progressing,
		},
		{
			"a Deployment with old pods",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 3, AvailableReplicas: 4}),
			Progressing,
		},
		{
			"a Deployment with new pods that are not available",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 2}),
			Progressing,
		},
		{
			"a Deployment that is done",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}),
			Complete,
		},
		{"a Deployment without pods", deployment(appsv1.DeploymentSpec{Replicas: &none}, appsv1.DeploymentStatus{ObservedGeneration: 2}), Complete},
		{
			"a Deployment whose controller has given up",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: failed}), Failed,
		},
		{"a Deployment that is paused", deployment(appsv1.DeploymentSpec{Replicas: &three, Paused: true}, appsv1.DeploymentStatus{}), Waiting},
		{
			"a StatefulSet with old pods",
			set(appsv1.StatefulSetSpec{Replicas: &three}, appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}), Progressing,
		},
		{
			"a StatefulSet that is done",
			set(appsv1.StatefulSetSpec{Replicas: &three}, appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 3, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}), Complete,
		},
		{
			"a StatefulSet that is done above its partition",
			set(appsv1.StatefulSetSpec{Replicas: &three, UpdateStrategy: rolling(&partition)}, appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 1, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}),
			Complete,
		},
		{
			"a StatefulSet whose partition keeps all pods",
			set(appsv1.StatefulSetSpec{Replicas: &three, UpdateStrategy: rolling(&three)}, appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, AvailableReplicas: 3}),
			Complete,
		},
		{
			"a StatefulSet that is scaled down while pods are replaced",
			set(appsv1.StatefulSetSpec{Replicas: &one}, appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 3}), Progressing,
		},
		{
			"a StatefulSet whose new pods are not ready for long enough",
			set(appsv1.StatefulSetSpec{Replicas: &three}, appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 2}),
			Progressing,
		},
		{
			"a StatefulSet whose pods are replaced when they are deleted",
			set(appsv1.StatefulSetSpec{Replicas: &three, UpdateStrategy: onDelete}, appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}),
			Waiting,
		},
		{
			"a DaemonSet with old pods",
			daemons(appsv1.RollingUpdateDaemonSetStrategyType, appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 1, NumberAvailable: 2}),
			Progressing,
		},
		{
			"a DaemonSet that is done",
			daemons(appsv1.RollingUpdateDaemonSetStrategyType, appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2}),
			Complete,
		},
		{
			"a DaemonSet whose pods are replaced when they are deleted",
			daemons(appsv1.OnDeleteDaemonSetStrategyType, appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2}), Waiting,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.got.State != test.want {
				t.Errorf("got state %d (%s), want %d", test.got.State, test.got.Message, test.want)
			}
		})
	}
}

func TestProgressGrowsWithEachPodThatIsReplaced(t *testing.T) {
	three := int32(3)
	meta := metav1.ObjectMeta{Generation: 2}
	tests := []struct {
		name   string
		states []Progress
	}{
		{"of a Deployment", progressesOf(func(updated, total, ready int32, observed int64) Progress {
			return deploymentProgress(&appsv1.Deployment{
				ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &three},
				Status: appsv1.DeploymentStatus{ObservedGeneration: observed, UpdatedReplicas: updated, Replicas: total, AvailableReplicas: ready},
			})
		})},
		{"of a StatefulSet", progressesOf(func(updated, _, ready int32, observed int64) Progress {
			return statefulSetProgress(&appsv1.StatefulSet{
				ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &three},
				Status: appsv1.StatefulSetStatus{ObservedGeneration: observed, UpdatedReplicas: updated, ReadyReplicas: ready},
			})
		})},
		{"of a DaemonSet", progressesOf(func(updated, _, ready int32, observed int64) Progress {
			return daemonSetProgress(&appsv1.DaemonSet{ObjectMeta: meta, Status: appsv1.DaemonSetStatus{
				ObservedGeneration: observed, DesiredNumberScheduled: 3, UpdatedNumberScheduled: updated, NumberAvailable: ready,
			}})
		})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for i := 1; i < len(test.states); i++ {
				if test.states[i].Done <= test.states[i-1].Done {
					t.Errorf("it is at %d, then at %d", test.states[i-1].Done, test.states[i].Done)
				}
			}
		})
	}
}

// progressesOf returns the progress while three pods are replaced one by one, each when the one before it is ready. In the first state,
// the controller has not observed the change yet, and the counts are those from before it.
func progressesOf(of func(updated, total, ready int32, observed int64) Progress) []Progress {
	return []Progress{of(3, 3, 3, 1), of(0, 3, 3, 2), of(1, 3, 3, 2), of(2, 3, 3, 2), of(3, 3, 3, 2)}
}
