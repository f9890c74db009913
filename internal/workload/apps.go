package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var deployments = Kind{
	Name: "deployment", APIVersion: "apps/v1", Title: "Deployment", Resource: "deployments",
	Example: &appsv1.Deployment{},
	client:  func(c Clients, namespace string) Objects { return typed(c.Typed.AppsV1().Deployments(namespace)) },
	read: reader(func(deployment *appsv1.Deployment) parts {
		status := deployment.Status
		c := podCounts{
			wanted: replicas(deployment.Spec.Replicas), all: status.Replicas, updated: status.UpdatedReplicas, available: status.AvailableReplicas,
			isObserved: status.ObservedGeneration >= deployment.Generation,
		}
		return c.parts(&deployment.ObjectMeta, &deployment.Spec.Template, deployment.Spec.Selector, deploymentProgress(deployment, c))
	}),
	template: specTemplate, strategy: annotating, countsChanges: true,
}

var statefulSets = Kind{
	Name: "statefulset", APIVersion: "apps/v1", Title: "StatefulSet", Resource: "statefulsets",
	Example: &appsv1.StatefulSet{},
	client:  func(c Clients, namespace string) Objects { return typed(c.Typed.AppsV1().StatefulSets(namespace)) },
	read: reader(func(set *appsv1.StatefulSet) parts {
		status, update := set.Status, set.Spec.UpdateStrategy
		c := podCounts{
			wanted: replicas(set.Spec.Replicas), all: status.Replicas, updated: status.UpdatedReplicas, ready: status.ReadyReplicas,
			available: status.AvailableReplicas, isObserved: status.ObservedGeneration >= set.Generation,
			onDelete: update.Type == appsv1.OnDeleteStatefulSetStrategyType,
			// The revisions become equal once all pods have been ready, which may be before they are available.
			wasComplete: status.UpdateRevision != "" && status.CurrentRevision == status.UpdateRevision,
		}
		if rolling := update.RollingUpdate; rolling != nil && rolling.Partition != nil {
			c.kept = min(*rolling.Partition, c.wanted)
		}
		progress := c.progress()
		progress.Remedy = c.orderedRemedy(set)
		return c.parts(&set.ObjectMeta, &set.Spec.Template, set.Spec.Selector, progress)
	}),
	template: specTemplate, strategy: annotating, countsChanges: true,
}

var daemonSets = Kind{
	Name: "daemonset", APIVersion: "apps/v1", Title: "DaemonSet", Resource: "daemonsets",
	Example: &appsv1.DaemonSet{},
	client:  func(c Clients, namespace string) Objects { return typed(c.Typed.AppsV1().DaemonSets(namespace)) },
	read: reader(func(set *appsv1.DaemonSet) parts {
		status := set.Status
		c := podCounts{
			wanted: status.DesiredNumberScheduled, all: status.CurrentNumberScheduled, updated: status.UpdatedNumberScheduled,
			ready: status.NumberAvailable, available: status.NumberAvailable, isObserved: status.ObservedGeneration >= set.Generation,
			onDelete: set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		}
		return c.parts(&set.ObjectMeta, &set.Spec.Template, set.Spec.Selector, c.progress())
	}),
	template: specTemplate, strategy: annotating, countsChanges: true,
}

// podCounts are the numbers of pods in the status of a kind of apps/v1.
type podCounts struct {
	// wanted is the desired number of pods, and kept is how many of them a partition leaves unchanged.
	wanted, kept                   int32
	all, updated, ready, available int32
	// isObserved says that the status is about the newest generation, and wasComplete that the rollout of its template was once complete.
	isObserved, wasComplete bool
	// onDelete says that pods are replaced only when someone deletes them.
	onDelete bool
}

func (c podCounts) parts(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, selector *metav1.LabelSelector, progress Progress) parts {
	serving := c.isObserved && serves(c.updated, c.all, c.available)
	return parts{meta: meta, template: template, selector: selector, progress: progress, serving: serving}
}

// deploymentProgress follows the rules of `kubectl rollout status`.
func deploymentProgress(deployment *appsv1.Deployment, c podCounts) Progress {
	old := c.all - c.updated
	p := Progress{Pods: c.wanted, Done: c.updated + c.available - old}
	if deployment.Spec.Paused {
		return p.is(Waiting, "the Deployment is paused")
	}
	if !c.isObserved {
		return p.unobserved()
	}
	isRefused := false
	for _, condition := range deployment.Status.Conditions {
		switch {
		case condition.Type == appsv1.DeploymentReplicaFailure:
			isRefused = condition.Status == corev1.ConditionTrue
		case condition.Type != appsv1.DeploymentProgressing:
		case condition.Status == corev1.ConditionFalse && condition.Reason == "ProgressDeadlineExceeded":
			return p.is(Failed, condition.Message)
		default:
			c.wasComplete = condition.Reason == "NewReplicaSetAvailable" // The reason stays until a ReplicaSet is created for a new template.
		}
	}
	switch {
	case c.updated < c.wanted:
		// No pod is being replaced: pods are missing, because they are refused. Without a refusal, the strategy Recreate may be ending the old ones.
		p.Unready = c.wasComplete && old == 0 && isRefused
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are new", c.updated, c.wanted))
	case old > 0:
		return p.is(Progressing, fmt.Sprintf("%d old pods are left", old))
	case c.available < c.updated:
		p.Unready = c.wasComplete
		return p.is(Progressing, fmt.Sprintf("%d of %d new pods are available", c.available, c.wanted))
	}
	return p.is(Complete, "")
}

// progress returns the progress of a StatefulSet or a DaemonSet, which have no deadline. It follows the rules of `kubectl rollout status`, but also
// waits for minReadySeconds and, while old pods are left, for pods to be deleted, which the status counts until they are gone.
func (c podCounts) progress() Progress {
	p := Progress{Pods: c.wanted, Done: c.updated + c.ready, Frozen: c.wanted > 0 && c.kept == c.wanted}
	switch due := c.wanted - c.kept; {
	case c.onDelete && c.updated < c.wanted:
		return p.is(Waiting, "the update strategy is OnDelete: a pod is replaced when it is deleted")
	case !c.isObserved:
		return p.unobserved()
	case c.updated < due:
		p.Unready = c.wasComplete && c.updated == c.all // No pod is being replaced: pods are missing.
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are new", c.updated, due))
	case c.all > c.wanted && c.updated < c.all: // The pods that remain may be the old ones.
		return p.is(Progressing, fmt.Sprintf("%d pods are being deleted", c.all-c.wanted))
	case c.available < c.wanted:
		p.Unready = c.wasComplete && c.ready < c.wanted
		return p.is(Progressing, fmt.Sprintf("%d of %d pods are available", c.available, c.wanted))
	case c.updated < c.wanted:
		return p.is(Complete, fmt.Sprintf("the partition keeps %d of %d pods as they are", c.wanted-c.updated, c.wanted))
	}
	return p.is(Complete, "")
}

// orderedRemedy returns the remedy if a pod of a StatefulSet with ordered pods does not become ready: its controller then replaces no pod, not even
// this one after a fix of the template. It replaces pods one by one from the last, so it waits for the newest one.
func (c podCounts) orderedRemedy(set *appsv1.StatefulSet) string {
	if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement || c.onDelete || !c.isObserved || c.all < c.wanted || c.ready >= c.wanted {
		return ""
	}
	pod, rolling := "a pod", set.Spec.UpdateStrategy.RollingUpdate
	isOneByOne := rolling == nil || rolling.MaxUnavailable == nil || *rolling.MaxUnavailable == intstr.FromInt32(1)
	if c.updated > 0 && c.updated <= c.wanted && isOneByOne {
		ordinal := c.wanted - c.updated
		if set.Spec.Ordinals != nil {
			ordinal += set.Spec.Ordinals.Start
		}
		pod = fmt.Sprintf("pod %s-%d", set.Name, ordinal)
	}
	return pod + " is not ready, and the StatefulSet replaces no pod before it is, not even that one: remove the cause, then delete the pod"
}
