package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// running returns the status of a pod that has just become ready: its init containers have ended, and its containers run.
func running(pod *corev1.Pod, address string, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Phase, status.StartTime = corev1.PodRunning, &now
	status.HostIP, status.HostIPs = nodeIP, []corev1.HostIP{{IP: nodeIP}}
	status.PodIP, status.PodIPs = address, []corev1.PodIP{{IP: address}}
	conditions := []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady}
	for _, gate := range pod.Spec.ReadinessGates {
		conditions = append(conditions, gate.ConditionType)
	}
	for _, condition := range conditions {
		status.Conditions = withTrue(status.Conditions, condition, now)
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	status.ContainerStatuses, status.InitContainerStatuses = nil, nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, runs))
	}
	for _, c := range pod.Spec.InitContainers {
		state := completed(now)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			state = runs // a sidecar
		}
		of := containerStatus(c, state)
		of.Ready = true
		status.InitContainerStatuses = append(status.InitContainerStatuses, of)
	}
	return status
}

// succeeded returns the status of a pod that was running and whose containers have ended well.
func succeeded(pod *corev1.Pod, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Phase, status.ContainerStatuses = corev1.PodSucceeded, nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, completed(now)))
	}
	return status
}

func completed(now metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 0, Reason: "Completed", StartedAt: now, FinishedAt: now},
	}
}

// containerStatus returns the status of a container, which is ready if it runs.
func containerStatus(c corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	runs := state.Running != nil
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: runs, Started: &runs, State: state}
}

// withTrue sets a condition to true. It keeps the others, such as that the pod is scheduled.
func withTrue(conditions []corev1.PodCondition, condition corev1.PodConditionType, now metav1.Time) []corev1.PodCondition {
	set := corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now}
	at := slices.IndexFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == condition })
	if at < 0 {
		return append(conditions, set)
	}
	conditions[at] = set
	return conditions
}
