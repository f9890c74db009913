package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

var deployments = Kind{
	Name: "deployment", APIVersion: "apps/v1", Title: "Deployment", Resource: "deployments",
	Example: &appsv1.Deployment{},
	client: func(c Clients, namespace string) Objects {
		return typed(c.Typed.AppsV1().Deployments(namespace))
	},
	read: reader(func(deployment *appsv1.Deployment) parts {
		status := deployment.Status
		serving := serves(status.UpdatedReplicas, status.Replicas, status.AvailableReplicas) && status.ObservedGeneration >= deployment.Generation
		return parts{
			meta: &deployment.ObjectMeta, template: &deployment.Spec.Template, progress: deploymentProgress(deployment), serving: serving,
			selector: deployment.Spec.Selector,
		}
	}),
	template: specTemplate, strategy: annotating,
}

// deploymentProgress follows the rules of `kubectl rollout status`.
func deploymentProgress(deployment *appsv1.Deployment) Progress {
	status, pods := deployment.Status, replicas(deployment.Spec.Replicas)
	old := status.Replicas - status.UpdatedReplicas
	p := Progress{Pods: pods, Done: status.UpdatedReplicas + status.AvailableReplicas - old}
	if deployment.Spec.Paused {
		return p.is(Waiting, "the Deployment is paused")
	}
	if status.ObservedGeneration < deployment.Generation {
		return p.unobserved()
	}
	wasComplete := false
	for _, condition := range status.Conditions {
		if condition.Type != appsv1.DeploymentProgressing {
			continue
		}
		if condition.Status == corev1.ConditionFalse && condition.Reason == "ProgressDeadlineExceeded" {
			return p.is(Failed, condition.Message)
		}
		wasComplete = condition.Reason == "NewReplicaSetAvailable" // It stays so until there is another template.
	}
	switch {
	case status.UpdatedReplicas < pods:
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are new", status.UpdatedReplicas, pods))
	case old > 0:
		return p.is(Progressing, fmt.Sprintf("%d old pods are left", old))
	case status.AvailableReplicas < status.UpdatedReplicas:
		p.Unready = wasComplete
		return p.is(Progressing, fmt.Sprintf("%d of %d new pods are available", status.AvailableReplicas, pods))
	}
	return p.is(Complete, "")
}
