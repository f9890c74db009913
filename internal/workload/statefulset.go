package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

var statefulSets = Kind{
	Name: "statefulset", APIVersion: "apps/v1", Title: "StatefulSet", Resource: "statefulsets",
	Example: &appsv1.StatefulSet{},
	client: func(c Clients, namespace string) Objects {
		return typed(c.Typed.AppsV1().StatefulSets(namespace))
	},
	read: reader(func(set *appsv1.StatefulSet) parts {
		status := set.Status
		serving := serves(status.UpdatedReplicas, status.Replicas, status.AvailableReplicas) && status.ObservedGeneration >= set.Generation
		return parts{
			meta: &set.ObjectMeta, template: &set.Spec.Template, progress: statefulSetProgress(set), serving: serving, selector: set.Spec.Selector,
		}
	}),
	template: specTemplate, strategy: annotating,
}

// statefulSetProgress follows the rules of `kubectl rollout status`. It also waits for minReadySeconds, and while some pods are old for those that
// are to be deleted, which the status counts until then. A StatefulSet has no deadline of its own.
func statefulSetProgress(set *appsv1.StatefulSet) Progress {
	status, pods := set.Status, replicas(set.Spec.Replicas)
	var kept int32
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		kept = min(*rolling.Partition, pods)
	}
	p := Progress{Pods: pods, Done: status.UpdatedReplicas + status.ReadyReplicas, Frozen: pods > 0 && kept == pods}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType && status.UpdatedReplicas < pods {
		return p.is(Waiting, "the update strategy is OnDelete: a pod is replaced when it is deleted")
	}
	if status.ObservedGeneration < set.Generation {
		return p.unobserved()
	}
	due, old := pods-kept, pods-status.UpdatedReplicas
	switch {
	case status.UpdatedReplicas < due:
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are new", status.UpdatedReplicas, due))
	case status.Replicas > pods && status.UpdatedReplicas < status.Replicas: // The old ones may be those that stay.
		return p.is(Progressing, fmt.Sprintf("%d pods are being deleted", status.Replicas-pods))
	case status.AvailableReplicas < pods:
		// The revisions are the same once all pods have been ready, which may be before they are available.
		p.Unready = status.UpdateRevision != "" && status.CurrentRevision == status.UpdateRevision && status.ReadyReplicas < pods
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are available", status.AvailableReplicas, pods))
	case old > 0:
		return p.is(Complete, fmt.Sprintf("the partition keeps %d of %d pods as they are", old, pods))
	}
	return p.is(Complete, "")
}
