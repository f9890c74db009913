package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

var daemonSets = Kind{
	Name: "daemonset", APIVersion: "apps/v1", Title: "DaemonSet", Resource: "daemonsets",
	Example: &appsv1.DaemonSet{},
	client: func(c Clients, namespace string) Objects {
		return typed(c.Typed.AppsV1().DaemonSets(namespace))
	},
	read: reader(func(set *appsv1.DaemonSet) parts {
		status := set.Status
		serving := serves(status.UpdatedNumberScheduled, status.CurrentNumberScheduled, status.NumberAvailable) &&
			status.ObservedGeneration >= set.Generation
		return parts{
			meta: &set.ObjectMeta, template: &set.Spec.Template, progress: daemonSetProgress(set), serving: serving, selector: set.Spec.Selector,
		}
	}),
	template: specTemplate, strategy: annotating,
}

// daemonSetProgress follows the rules of `kubectl rollout status`. A DaemonSet has no deadline of its own.
func daemonSetProgress(set *appsv1.DaemonSet) Progress {
	status, pods := set.Status, set.Status.DesiredNumberScheduled
	p := Progress{Pods: pods, Done: status.UpdatedNumberScheduled + status.NumberAvailable}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType && status.UpdatedNumberScheduled < pods {
		return p.is(Waiting, "the update strategy is OnDelete: a pod is replaced when it is deleted")
	}
	switch {
	case status.ObservedGeneration < set.Generation:
		return p.unobserved()
	case status.UpdatedNumberScheduled < pods:
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are new", status.UpdatedNumberScheduled, pods))
	case status.NumberAvailable < pods:
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are available", status.NumberAvailable, pods))
	}
	return p.is(Complete, "")
}
