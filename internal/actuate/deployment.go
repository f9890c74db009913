package actuate

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

var deployments = kind{
	name: "deployment", apiVersion: "apps/v1", title: "Deployment", resource: "deployments",
	example: &appsv1.Deployment{},
	client: func(client kubernetes.Interface, namespace string) objectClient {
		return objects(client.AppsV1().Deployments(namespace))
	},
	read: func(obj runtime.Object) (parts, bool) {
		deployment, ok := obj.(*appsv1.Deployment)
		if !ok {
			return parts{}, false
		}
		return parts{&deployment.ObjectMeta, &deployment.Spec.Template, deploymentProgress(deployment)}, true
	},
	template: specTemplate,
}

// deploymentProgress asks what `kubectl rollout status` asks.
func deploymentProgress(deployment *appsv1.Deployment) progress {
	status, pods := deployment.Status, replicas(deployment.Spec.Replicas)
	if deployment.Spec.Paused {
		return progress{stateWaiting, "the Deployment is paused", pods}
	}
	if status.ObservedGeneration < deployment.Generation {
		return progress{stateProgressing, "the controller has not seen the change yet", pods}
	}
	for _, condition := range status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse &&
			condition.Reason == "ProgressDeadlineExceeded" {
			return progress{stateFailed, condition.Message, pods}
		}
	}
	switch {
	case status.UpdatedReplicas < pods:
		return progress{stateProgressing, fmt.Sprintf("%d of %d pods are new", status.UpdatedReplicas, pods), pods}
	case status.Replicas > status.UpdatedReplicas:
		return progress{stateProgressing, fmt.Sprintf("%d old pods are left", status.Replicas-status.UpdatedReplicas), pods}
	case status.AvailableReplicas < status.UpdatedReplicas:
		return progress{stateProgressing, fmt.Sprintf("%d of %d new pods are available", status.AvailableReplicas, pods), pods}
	}
	return progress{stateComplete, "", pods}
}

// replicas is the number of pods that a spec asks for. Unset is one.
func replicas(spec *int32) int32 {
	if spec == nil {
		return 1
	}
	return *spec
}
