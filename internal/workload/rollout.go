package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// argoRollouts is the kind Rollout of Argo Rollouts 1.0 or later, whose status has a phase. It cannot be a target from configuration: a Rollout may
// run the pods of a Deployment (workloadRef), may be aborted, and restarts pods by spec.restartAt. With workloadRef, the Deployment is the workload,
// with the phase and annotations of its Rollout, because one patch writes one object.
var argoRollouts = Kind{
	Name: "rollout", APIVersion: "argoproj.io/v1alpha1", Title: "Rollout", Resource: "rollouts.argoproj.io",
	Custom: true, Manifest: "deploy/components/argo-rollouts",
	Example: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}},
	client: func(c Clients, namespace string) Objects {
		resource := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
		return custom(c.Dynamic.Resource(resource).Namespace(namespace))
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
		p := parts{meta: &r.Meta, template: &r.Spec.Template, progress: r.progress()}
		p.serving = serves(status.UpdatedReplicas, status.Replicas, status.AvailableReplicas) && r.isObserved()
		// Argo Rollouts refuses a template without labels.
		p.usesOtherTemplate = len(r.Spec.Template.Labels) == 0
		if ref := r.Spec.WorkloadRef; ref != nil {
			p.usesOtherTemplate = true
			p.observes, _ = strconv.ParseInt(status.WorkloadObservedGeneration, 10, 64) // 0: none yet
			if ref.Kind == deployments.Title {
				p.runs = Key{Kind: deployments.Name, Namespace: r.Meta.Namespace, Name: ref.Name}
			}
		}
		p.restarts, p.restartAt, p.lastWrite = r.restarts(), r.Spec.RestartAt, newestTouch(&r.Meta)
		p.Aborted = r.isAborted() && !p.restarts
		if _, has := object.Object["status"].(map[string]any); has {
			p.unaborted = []operation{test("/status/abort", status.Abort)}
		}
		return p, true
	},
	template: specTemplate, strategy: annotatingOrRestarting,
}

// rollout contains the fields of a Rollout that are read.
type rollout struct {
	Meta metav1.ObjectMeta `json:"metadata"`
	Spec struct {
		Replicas *int32 `json:"replicas"`
		// RestartAt is kept as written, because a patch tests it.
		RestartAt string                 `json:"restartAt"`
		Template  corev1.PodTemplateSpec `json:"template"`
		// WorkloadRef names the workload with the pod template, if the Rollout has none.
		WorkloadRef *struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"workloadRef"`
		Strategy struct {
			BlueGreen *struct{} `json:"blueGreen"`
			Canary    struct {
				Steps          []rolloutStep `json:"steps"`
				TrafficRouting *struct{}     `json:"trafficRouting"`
			} `json:"canary"`
		} `json:"strategy"`
	} `json:"spec"`
	Status struct {
		Phase   string `json:"phase"`
		Message string `json:"message"`
		// Abort is kept as written, because a patch tests it.
		Abort *bool `json:"abort"`
		// RestartedAt is the newest RestartAt from before which no pods are left.
		RestartedAt string `json:"restartedAt"`
		// ObservedGeneration is a number, as text.
		ObservedGeneration string `json:"observedGeneration"`
		// WorkloadObservedGeneration is the observed generation of the workload that WorkloadRef names.
		WorkloadObservedGeneration string `json:"workloadObservedGeneration"`

		Replicas          int32  `json:"replicas"`
		UpdatedReplicas   int32  `json:"updatedReplicas"`
		AvailableReplicas int32  `json:"availableReplicas"`
		CurrentStepIndex  *int32 `json:"currentStepIndex"`

		// CurrentPodHash is the hash of the current pod template, and StableRS that of the last template that has completed all steps.
		CurrentPodHash string `json:"currentPodHash"`
		StableRS       string `json:"stableRS"`
	} `json:"status"`
}

// rolloutStep is a step of a canary that waits for something other than pods.
type rolloutStep struct {
	Analysis   *struct{} `json:"analysis"`
	Experiment *struct{} `json:"experiment"`
}

// progress returns the progress according to the phase.
func (r *rollout) progress() Progress {
	status, pods := &r.Status, replicas(r.Spec.Replicas)
	old := status.Replicas - status.UpdatedReplicas
	p := Progress{Pods: pods, Done: status.UpdatedReplicas + status.AvailableReplicas - old}
	if !r.isObserved() {
		return p.unobserved()
	}
	restarted := isRestarted(r.Spec.RestartAt, status.RestartedAt)
	if r.restarts() && !restarted {
		p.NotBefore = r.scheduled()
		return p.is(Progressing, "pods are being restarted")
	}
	if r.restarts() && (status.Phase == "Paused" || r.isAborted()) {
		p.Partial = true
		return p.is(Complete, "the pods are restarted; the Rollout is "+strings.ToLower(status.Phase))
	}
	switch status.Phase {
	case "Healthy":
		return p.is(Complete, "")
	case "Degraded":
		p.Aborted = r.isAborted()
		return p.is(Failed, status.Message)
	case "Paused":
		p.Partial = true
		return p.is(Waiting, "the Rollout is paused: "+status.Message)
	}
	if index, waits := r.waitingStep(); waits {
		p.Partial = true
		return p.is(Waiting, fmt.Sprintf("step %d of the canary is an analysis or an experiment", index+1))
	}
	if !restarted && r.isPromoted() {
		// All pods are new. The phase is not Healthy only because of an outstanding restart, which may be scheduled for much later.
		return p.is(Complete, "")
	}
	p.Unready = restarted && status.StableRS != "" && status.StableRS == status.CurrentPodHash && status.UpdatedReplicas >= pods
	return p.is(Progressing, status.Message)
}

// scheduled returns the time of a future restart that a user has scheduled. It is zero if there is none, or if a roll may have set it.
func (r *rollout) scheduled() time.Time {
	at, err := time.Parse(time.RFC3339, r.Spec.RestartAt)
	if err != nil || !at.After(newestTouch(&r.Meta).Add(restartDelay)) {
		return time.Time{}
	}
	return at
}

// isAborted reports whether a person or an analysis aborted the rollout and nobody has retried it.
func (r *rollout) isAborted() bool { return r.Status.Abort != nil && *r.Status.Abort }

// isPromoted reports whether all pods have the current template and are available. The phase is then Healthy, unless a restart is outstanding.
func (r *rollout) isPromoted() bool {
	status, strategy := &r.Status, &r.Spec.Strategy
	keepsOld := strategy.BlueGreen != nil || strategy.Canary.TrafficRouting != nil // They stay for a while, without traffic.
	return status.StableRS != "" && status.StableRS == status.CurrentPodHash && status.UpdatedReplicas >= replicas(r.Spec.Replicas) &&
		status.AvailableReplicas >= status.UpdatedReplicas && (keepsOld || status.Replicas <= status.UpdatedReplicas)
}

// restarts reports whether a roll restarts the pods without a change of the pod template. A Rollout without its own template is never restarted: the
// record is on the workload with the template, and one patch writes both.
func (r *rollout) restarts() bool {
	return r.Spec.WorkloadRef == nil && r.Meta.Annotations[annotationRolloutStrategy] == "restart"
}

// isObserved reports whether the controller has observed the newest generation.
func (r *rollout) isObserved() bool {
	observed, err := strconv.ParseInt(r.Status.ObservedGeneration, 10, 64)
	return err == nil && observed >= r.Meta.Generation
}

// waitingStep returns the index of the current step of a canary, and whether the step waits without a time limit and replaces no pods.
func (r *rollout) waitingStep() (index int32, waits bool) {
	steps := r.Spec.Strategy.Canary.Steps
	if i := r.Status.CurrentStepIndex; i != nil && *i >= 0 && int(*i) < len(steps) {
		return *i, steps[*i].Analysis != nil || steps[*i].Experiment != nil
	}
	return 0, false
}

// annotationRolloutStrategy, on a Rollout, is an annotation of Reloader. With "restart", pods are replaced without a change of the template.
const annotationRolloutStrategy = "reloader.stakater.com/rollout-strategy"

// annotatingOrRestarting replaces the pods of a Rollout by annotations on the pod template, or by a restart with annotations on the Rollout.
var annotatingOrRestarting = strategy{
	change: func(w *Workload, template string, m mark) []operation {
		if !w.restarts {
			return slices.Concat(w.unaborted, annotating.change(w, template, m))
		}
		const path = "/spec/restartAt"
		var held any
		if w.restartAt != "" {
			held = w.restartAt
		}
		restart := []operation{test(path, held), add(path, w.nextRestart(m.readFrom))}
		return append(restart, annotate(ownAnnotations, w.stored.metaTraced, m)...)
	},
	revision: func(p parts) string {
		ofTemplate, ofRestart := annotating.revision(p), p.meta.Annotations[annotationRevision]
		if p.restartAt == "" {
			ofRestart = "" // A user has cancelled the restart.
		}
		// A switch between the two methods does not undo the last roll. The record tells which method it used.
		recorded := revisionOf(p.meta.Annotations[annotationRolled], p.meta.Annotations[annotationReverted])
		if ofTemplate == recorded || !p.restarts && ofRestart != recorded {
			return ofTemplate
		}
		return ofRestart
	},
}

// Restarts reports whether a roll restarts the pods without a change of the template.
func (w *Workload) Restarts() bool { return w.restarts }

// nextRestart returns the spec.restartAt that replaces all pods from before readFrom, when pods start to read a change. It must be after the newest
// write, which may be a status from after a start of pods, and after the current value: otherwise, no pods would be replaced.
func (w *Workload) nextRestart(readFrom time.Time) string {
	next := later(readFrom, w.lastWrite.Add(restartDelay))
	if held, err := time.Parse(time.RFC3339, w.restartAt); err == nil && !next.After(held) {
		next = held.Add(time.Second)
	}
	return next.UTC().Format(time.RFC3339)
}

// isRestarted reports whether no restart is outstanding.
func isRestarted(wanted, done string) bool {
	want, err := time.Parse(time.RFC3339, wanted)
	if err != nil {
		return true // There was no restart.
	}
	last, err := time.Parse(time.RFC3339, done)
	return err == nil && !last.Before(want)
}
