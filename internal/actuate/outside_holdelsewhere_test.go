//go:build !race

package actuate_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// holdingObject returns a custom resource that rolls on all that it reads. It is on hold unless that is taken off.
func holdingObject(apiVersion, kind, name string, object map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: object}
	made.SetAPIVersion(apiVersion)
	made.SetKind(kind)
	made.SetName(name)
	made.SetAnnotations(map[string]string{workload.AnnotationRollOn: "auto", events.AnnotationHold: "tofu apply"})
	return made
}

// withoutHold returns a copy of a custom resource that is not on hold.
func withoutHold(object *unstructured.Unstructured) *unstructured.Unstructured {
	copied := object.DeepCopy()
	copied.SetAnnotations(map[string]string{workload.AnnotationRollOn: "auto"})
	return copied
}

// Each row puts a workload on hold by what is annotated, and returns what takes the hold off. Rolled is what is then rolled.
func TestAHoldCountsWhereverItIsAnnotated(t *testing.T) {
	tests := []struct {
		name, rolled string
		hold         func(*scene) (takeOff func())
	}{
		{"on a Rollout that runs a Deployment", "web", func(s *scene) func() {
			s.options.ArgoRollouts = true
			server := s.serveCustom(map[schema.GroupVersionResource]string{rolloutResource: "RolloutList"})
			s.workload("web", reads("secret/db"))
			s.scale("web", 0)
			rollout := holdingObject("argoproj.io/v1alpha1", "Rollout", "edge", map[string]any{
				"spec":   map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": "web"}},
				"status": map[string]any{"phase": "Healthy", "observedGeneration": "0", "workloadObservedGeneration": "99"},
			})
			server.put(rolloutResource, rollout)
			return func() { server.put(rolloutResource, withoutHold(rollout)) }
		}},
		{"on what a custom resource owns", "widget/all", func(s *scene) func() {
			const targets = `targets:
- {apiVersion: example.org/v1, kind: Widget, resource: widgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
- {apiVersion: example.org/v1, kind: Gadget, resource: gadgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
`
			s.target(targets)
			widgets := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
			gadgets := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "gadgets"}
			server := s.serveCustom(map[schema.GroupVersionResource]string{widgets: "WidgetList", gadgets: "GadgetList"})
			widget := holdingObject("example.org/v1", "Widget", "all", map[string]any{"spec": map[string]any{"secret": "db"}})
			gadget := holdingObject("example.org/v1", "Gadget", "web", map[string]any{"spec": map[string]any{"secret": "db"}})
			gadget.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Widget", Name: "all", Controller: new(true)}})
			server.put(widgets, withoutHold(widget))
			server.put(gadgets, gadget)
			return func() { server.put(gadgets, withoutHold(gadget)) }
		}},
		{"on a Job that is made anew", "job/report", func(s *scene) func() {
			s.options.RecreateJobs = true
			s.job("report", auto, reads("secret/db"), onHold)
			return func() { s.editJob("report", func(job *batchv1.Job) { delete(job.Annotations, events.AnnotationHold) }) }
		}},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			takeOff := tt.hold(s)
			s.begin("secret/db")
			s.settled("secret/db", "password", "two")
			s.wantTold(tt.rolled + " held on-hold")
			s.wantLast(tt.rolled, "held on-hold", "tofu apply")
			takeOff()
			s.settle()
			s.wantTold(tt.rolled+" started content-changed", tt.rolled+" completed rolled-out")
		})
	}
}
