package actuate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProgressIsWhatTheStatusSays(t *testing.T) {
	three, none := int32(3), int32(0)
	meta := metav1.ObjectMeta{Generation: 2}
	partition := int32(2)
	rolling := func(p *int32) appsv1.StatefulSetUpdateStrategy {
		return appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: p}}
	}
	failed := []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "too slow",
	}}
	onDelete := appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	deployment := func(spec appsv1.DeploymentSpec, status appsv1.DeploymentStatus) progress {
		return deploymentProgress(&appsv1.Deployment{ObjectMeta: meta, Spec: spec, Status: status})
	}
	set := func(spec appsv1.StatefulSetSpec, status appsv1.StatefulSetStatus) progress {
		return statefulSetProgress(&appsv1.StatefulSet{ObjectMeta: meta, Spec: spec, Status: status})
	}
	daemons := func(strategy appsv1.DaemonSetUpdateStrategyType, status appsv1.DaemonSetStatus) progress {
		return daemonSetProgress(&appsv1.DaemonSet{
			ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: strategy}}, Status: status,
		})
	}
	tests := []struct {
		name string
		got  progress
		want state
	}{
		{
			"a Deployment whose controller has not looked",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}),
			stateProgressing,
		},
		{
			"a Deployment with old pods",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 3, AvailableReplicas: 4}),
			stateProgressing,
		},
		{
			"a Deployment with new pods that are not available",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 2}),
			stateProgressing,
		},
		{
			"a Deployment that is done",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}),
			stateComplete,
		},
		{"a Deployment without pods", deployment(appsv1.DeploymentSpec{Replicas: &none}, appsv1.DeploymentStatus{ObservedGeneration: 2}), stateComplete},
		{
			"a Deployment that does not say how many pods, and has none yet",
			deployment(appsv1.DeploymentSpec{}, appsv1.DeploymentStatus{ObservedGeneration: 2}), stateProgressing,
		},
		{
			"a Deployment whose controller has given up",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: failed}), stateFailed,
		},
		{
			"a Deployment whose controller had given up, before it looked again",
			deployment(appsv1.DeploymentSpec{Replicas: &three}, appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: failed}), stateProgressing,
		},
		{"a Deployment that is paused", deployment(appsv1.DeploymentSpec{Replicas: &three, Paused: true}, appsv1.DeploymentStatus{}), stateWaiting},
		{
			"a StatefulSet with old pods",
			set(appsv1.StatefulSetSpec{Replicas: &three}, appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 2, ReadyReplicas: 3}), stateProgressing,
		},
		{
			"a StatefulSet that is done",
			set(appsv1.StatefulSetSpec{Replicas: &three}, appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 3, ReadyReplicas: 3}), stateComplete,
		},
		{
			"a StatefulSet that is done above its partition",
			set(appsv1.StatefulSetSpec{Replicas: &three, UpdateStrategy: rolling(&partition)}, appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 1, ReadyReplicas: 3}),
			stateComplete,
		},
		{
			"a StatefulSet whose pods are replaced when they are deleted",
			set(appsv1.StatefulSetSpec{Replicas: &three, UpdateStrategy: onDelete}, appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 2, ReadyReplicas: 3}),
			stateWaiting,
		},
		{
			"a StatefulSet whose pods were all deleted and replaced",
			set(appsv1.StatefulSetSpec{Replicas: &three, UpdateStrategy: onDelete}, appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 3, ReadyReplicas: 3}),
			stateComplete,
		},
		{
			"a DaemonSet with old pods",
			daemons(appsv1.RollingUpdateDaemonSetStrategyType, appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 1, NumberAvailable: 2}),
			stateProgressing,
		},
		{
			"a DaemonSet that is done",
			daemons(appsv1.RollingUpdateDaemonSetStrategyType, appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2}),
			stateComplete,
		},
		{
			"a DaemonSet whose pods are replaced when they are deleted",
			daemons(appsv1.OnDeleteDaemonSetStrategyType, appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2}), stateWaiting,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.got.state != test.want {
				t.Errorf("got state %d (%s), want %d", test.got.state, test.got.message, test.want)
			}
		})
	}
}
