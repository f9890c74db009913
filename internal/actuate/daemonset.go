package actuate

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

var daemonSets = kind{
	name: "daemonset", apiVersion: "apps/v1", title: "DaemonSet", resource: "daemonsets",
	example: &appsv1.DaemonSet{},
	client: func(client kubernetes.Interface, namespace string) objectClient {
		return objects(client.AppsV1().DaemonSets(namespace))
	},
	read: func(obj runtime.Object) (parts, bool) {
		set, ok := obj.(*appsv1.DaemonSet)
		if !ok {
			return parts{}, false
		}
		return parts{&set.ObjectMeta, &set.Spec.Template, daemonSetProgress(set)}, true
	},
	template: specTemplate,
}

// daemonSetProgress asks what `kubectl rollout status` asks. A DaemonSet has no deadline of its own.
func daemonSetProgress(set *appsv1.DaemonSet) progress {
	status, pods := set.Status, set.Status.DesiredNumberScheduled
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType && status.UpdatedNumberScheduled < pods {
		return progress{stateWaiting, "the update strategy is OnDelete: a pod is replaced when it is deleted", pods}
	}
	switch {
	case status.ObservedGeneration < set.Generation:
		return progress{stateProgressing, "the controller has not seen the change yet", pods}
	case status.UpdatedNumberScheduled < pods:
		return progress{stateProgressing, fmt.Sprintf("%d of %d pods are new", status.UpdatedNumberScheduled, pods), pods}
	case status.NumberAvailable < pods:
		return progress{stateProgressing, fmt.Sprintf("%d of %d pods are available", status.NumberAvailable, pods), pods}
	}
	return progress{stateComplete, "", pods}
}
