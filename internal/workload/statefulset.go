package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var statefulSets = Kind{
	Name: "statefulset", APIVersion: "apps/v1", Title: "StatefulSet", Resource: "statefulsets",
	Example: &appsv1.StatefulSet{},
	client: func(c Clients, namespace string) Objects {
		return typed(c.Typed.AppsV1().StatefulSets(namespace))
	},
	read: func(obj runtime.Object) (parts, bool) {
		set, ok := obj.(*appsv1.StatefulSet)
		if !ok {
			return parts{}, false
		}
		status := set.Status
		serving := serves(status.UpdatedReplicas, status.Replicas, status.AvailableReplicas) && status.ObservedGeneration >= set.Generation
		return parts{
			meta: &set.ObjectMeta, template: &set.Spec.Template, progress: statefulSetProgress(set), serving: serving, selector: set.Spec.Selector,
		}, true
	},
	template: specTemplate, strategy: annotating,
}

// statefulSetProgress follows the rules of `kubectl rollout status`. A StatefulSet has no deadline of its own.
func statefulSetProgress(set *appsv1.StatefulSet) Progress {
	status, pods := set.Status, replicas(set.Spec.Replicas)
	p := Progress{Pods: pods, Done: status.UpdatedReplicas + status.ReadyReplicas}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType && status.UpdatedReplicas < pods {
		return p.is(Waiting, "the update strategy is OnDelete: a pod is replaced when it is deleted")
	}
	if status.ObservedGeneration < set.Generation {
		return p.unobserved()
	}
	var kept int32
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		kept = *rolling.Partition
	}
	switch due := max(pods-kept, 0); {
	case status.UpdatedReplicas < due:
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are new", status.UpdatedReplicas, due))
	case status.ReadyReplicas < pods:
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are ready", status.ReadyReplicas, pods))
	}
	return p.is(Complete, "")
}
