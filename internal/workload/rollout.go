package workload

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// argoRollouts are the Rollouts of Argo Rollouts, from version 1.0 on, in which a status has a phase.
var argoRollouts = Kind{
	Name: "rollout", APIVersion: "argoproj.io/v1alpha1", Title: "Rollout", Resource: "rollouts.argoproj.io", Component: "argo-rollouts",
	Example: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}},
	client: func(c Clients, namespace string) Objects {
		resource := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
		return customObjects{c.Dynamic.Resource(resource).Namespace(namespace)}
	},
	read: func(obj runtime.Object) (parts, bool) {
		object, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return parts{}, false
		}
		var r rollout
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &r); err != nil {
			return parts{}, false
		}
		status := r.Status
		serving := serves(status.UpdatedReplicas, status.Replicas, status.AvailableReplicas) && r.isObserved()
		return parts{meta: &r.Meta, template: &r.Spec.Template, progress: r.progress(), serving: serving}, true
	},
	template: specTemplate, strategy: annotating,
}

// rollout is what is read of a Rollout.
type rollout struct {
	Meta metav1.ObjectMeta `json:"metadata"`
	Spec struct {
		Replicas *int32                 `json:"replicas"`
		Template corev1.PodTemplateSpec `json:"template"`
		Strategy struct {
			Canary struct {
				Steps []rolloutStep `json:"steps"`
			} `json:"canary"`
		} `json:"strategy"`
	} `json:"spec"`
	Status struct {
		Phase   string `json:"phase"`
		Message string `json:"message"`
		Abort   bool   `json:"abort"`
		// ObservedGeneration is a number, as text.
		ObservedGeneration string `json:"observedGeneration"`
		Replicas           int32  `json:"replicas"`
		UpdatedReplicas    int32  `json:"updatedReplicas"`
		AvailableReplicas  int32  `json:"availableReplicas"`
		CurrentStepIndex   *int32 `json:"currentStepIndex"`
	} `json:"status"`
}

// rolloutStep is a step of a canary that waits for something other than pods.
type rolloutStep struct {
	Analysis   *struct{} `json:"analysis"`
	Experiment *struct{} `json:"experiment"`
}

// progress follows the phase, with which the controller says how far it is.
func (r *rollout) progress() Progress {
	status, pods := &r.Status, replicas(r.Spec.Replicas)
	old := status.Replicas - status.UpdatedReplicas
	p := Progress{Pods: pods, Done: status.UpdatedReplicas + status.AvailableReplicas - old}
	if !r.isObserved() {
		return p.unobserved()
	}
	switch status.Phase {
	case "Healthy":
		return p.is(Complete, "")
	case "Degraded":
		p.Aborted = status.Abort
		return p.is(Failed, status.Message)
	case "Paused":
		return p.is(Waiting, "the Rollout is paused: "+status.Message)
	}
	if index, waits := r.waitingStep(); waits {
		return p.is(Waiting, fmt.Sprintf("step %d of the canary is an analysis or an experiment", index+1))
	}
	return p.is(Progressing, status.Message)
}

// isObserved reports whether the controller has observed the newest generation.
func (r *rollout) isObserved() bool {
	observed, err := strconv.ParseInt(r.Status.ObservedGeneration, 10, 64)
	return err == nil && observed >= r.Meta.Generation
}

// waitingStep returns the current step of a canary, and whether it is one that takes as long as it takes: no pod is replaced meanwhile, and
// the controller has no deadline for it either.
func (r *rollout) waitingStep() (index int32, waits bool) {
	steps := r.Spec.Strategy.Canary.Steps
	if i := r.Status.CurrentStepIndex; i != nil && *i >= 0 && int(*i) < len(steps) {
		return *i, steps[*i].Analysis != nil || steps[*i].Experiment != nil
	}
	return 0, false
}
