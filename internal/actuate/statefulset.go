package actuate

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

var statefulSets = kind{
	name: "statefulset", apiVersion: "apps/v1", title: "StatefulSet", resource: "statefulsets",
	example: &appsv1.StatefulSet{},
	client: func(client kubernetes.Interface, namespace string) objectClient {
		return objects(client.AppsV1().StatefulSets(namespace))
	},
	read: func(obj runtime.Object) (parts, bool) {
		set, ok := obj.(*appsv1.StatefulSet)
		if !ok {
			return parts{}, false
		}
		return parts{&set.ObjectMeta, &set.Spec.Template, statefulSetProgress(set)}, true
	},
	template: specTemplate,
}

// statefulSetProgress asks what `kubectl rollout status` asks. A StatefulSet has no deadline of its own.
func statefulSetProgress(set *appsv1.StatefulSet) progress {
	status, pods := set.Status, replicas(set.Spec.Replicas)
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType && status.UpdatedReplicas < pods {
		return progress{stateWaiting, "the update strategy is OnDelete: a pod is replaced when it is deleted", pods}
	}
	if status.ObservedGeneration < set.Generation {
		return progress{stateProgressing, "the controller has not seen the change yet", pods}
	}
	var kept int32
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		kept = *rolling.Partition
	}
	switch due := max(pods-kept, 0); {
	case status.UpdatedReplicas < due:
		return progress{stateProgressing, fmt.Sprintf("%d of %d pods are new", status.UpdatedReplicas, due), pods}
	case status.ReadyReplicas < pods:
		return progress{stateProgressing, fmt.Sprintf("%d of %d pods are ready", status.ReadyReplicas, pods), pods}
	}
	return progress{stateComplete, "", pods}
}
