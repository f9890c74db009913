package actuate

import (
	"maps"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// TestAHoldCountsWhereverItIsAnnotated sets and removes a hold on an object that is rolled through another one, or is created again.
func TestAHoldCountsWhereverItIsAnnotated(t *testing.T) {
	kinds, reading := targetsOf(t)
	rolling := func(hold map[string]string) map[string]string {
		all := rollOn("auto")
		maps.Copy(all, hold)
		return all
	}
	scaledDown := webDeployment("10", nil)
	scaledDown.Spec.Replicas = new(int32)
	run, _ := workload.Read(deployments, scaledDown, workload.Reading{})
	tests := []struct {
		name string
		// rolled is what is rolled, nil if it is the annotated object, which read returns at a resourceVersion.
		rolled *workload.Workload
		read   func(version string, hold map[string]string) *workload.Workload
	}{
		{"on a Rollout that runs a Deployment", run, func(version string, hold map[string]string) *workload.Workload {
			rollout := &unstructured.Unstructured{Object: map[string]any{
				"spec":   map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": "web"}},
				"status": map[string]any{"phase": "Healthy", "observedGeneration": "0", "workloadObservedGeneration": "99"},
			}}
			rollout.SetName("edge")
			rollout.SetNamespace("shop")
			rollout.SetUID("uid-edge")
			rollout.SetResourceVersion(version)
			rollout.SetAnnotations(rolling(hold))
			w, _ := workload.Read(workload.ArgoRollout(), rollout, workload.Reading{})
			return w
		}},
		{"on what a custom resource owns", ownerNamed(t, kinds, reading, "widget", "all", "10", "", ""), func(version string, hold map[string]string) *workload.Workload {
			gadget, _ := kinds.Named("gadget")
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secret": "db"}}}
			object.SetName("web")
			object.SetNamespace("shop")
			object.SetUID("uid-gadget")
			object.SetResourceVersion(version)
			object.SetAnnotations(rolling(hold))
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Widget", Name: "all", Controller: new(true)}})
			w, _ := workload.Read(gadget, object, reading)
			return w
		}},
		{"on a Job that is made anew", nil, func(version string, hold map[string]string) *workload.Workload {
			w, _ := workload.Read(workload.Job(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Name: "report", Namespace: "shop", UID: "uid-job", ResourceVersion: version, Annotations: rolling(hold),
			}}, workload.Reading{})
			return w
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := loopOf(t, testOptions())
			x := l.intake.index
			held := tt.read("11", map[string]string{events.AnnotationHold: "tofu apply"})
			if tt.rolled == nil {
				tt.rolled = held
			} else {
				x.Listed(tt.rolled, "")
			}
			x.Written(held)
			key := tt.rolled.Key()
			p := l.debounce.pend(tt.rolled, changeOf(nil))
			if why := l.dispatcher.admission.timing.stop(x.Get(key)); why.reason != plan.OnHold || why.said != "tofu apply" {
				t.Fatalf("it waits for %q: %s", why.reason, why.said)
			}
			l.debounce.hold(p, plan.OnHold)
			l.dirty.take()
			x.Written(tt.read("12", nil))
			l.review(t.Context())
			if p.isHeld() {
				t.Error("it is not looked at when the hold is taken off")
			}
			if why := l.dispatcher.admission.timing.stop(x.Get(key)); why.reason != plan.None {
				t.Errorf("then it waits for %q: %s", why.reason, why.said)
			}
		})
	}
}
