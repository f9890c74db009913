package tests

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// argoRig is a rig for workloads of Argo Rollouts.
type argoRig struct{ customRig }

// newArgoRig is newRig with an actuator that rolls Rollouts. It starts no controller of them, which one of another test may take care of all the same.
func newArgoRig(t *testing.T, options programs.Options) *argoRig {
	t.Helper()
	options.ActuatorArgs = append([]string{"--settle", "50ms", "--workload-kinds", "deployment,statefulset,daemonset,cronjob,rollout"}, options.ActuatorArgs...)
	r := newRig(t, options)
	testkit.Must(t, plane.ApplyKinds(t.Context(), testbed.RBACKinds(), "../deploy/components/argo-rollouts/rbac.yaml"))
	return &argoRig{r.ofKind(schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"})}
}

// argoRollout is a Rollout of two pods, whose container is to read a Secret.
type argoRollout struct {
	name, secret string
	// annotations are those of its metadata, in braces.
	annotations string
	// steps are those of its canary, in brackets. Empty means none.
	steps string
	// strategy, in braces, is in place of the canary. Empty: none.
	strategy string
	// more is how many replicas it has, and what else is in its spec. Empty: two.
	more string
	// workloadRef is the Deployment whose pod template it runs. Empty: it has one of its own, which reads the Secret.
	workloadRef string
	// scaleDown is that of its workloadRef. Empty: never.
	scaleDown string
}

func (r *argoRig) createRollout(o argoRollout) {
	r.Helper()
	if o.steps == "" {
		o.steps = "[]"
	}
	if o.strategy == "" {
		o.strategy = "{canary: {maxSurge: 1, maxUnavailable: 0, steps: " + o.steps + "}}"
	}
	if o.more == "" {
		o.more = "replicas: 2"
	}
	pods := fmt.Sprintf(`template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: "example.com/app:1", envFrom: [{secretRef: {name: %[2]s}}]}]}`, o.name, o.secret)
	app := o.name
	if o.workloadRef != "" {
		app = o.workloadRef
		pods = fmt.Sprintf(`workloadRef: {apiVersion: apps/v1, kind: Deployment, name: %s, scaleDown: %s}`, o.workloadRef, cmp.Or(o.scaleDown, "never"))
	}
	err := plane.ApplyYAML(r.Context(), strings.NewReader(fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: %s, namespace: %s, annotations: %s}
spec:
  selector: {matchLabels: {app: %s}}
  strategy: %s
  %s
  %s
`, o.name, r.namespace, o.annotations, app, o.strategy, o.more, pods)))
	testkit.Must(r, err)
}

func (r *argoRig) awaitPhase(name, phase string) {
	r.Helper()
	r.eventually("rollout "+name+" is "+phase, func(context.Context) bool {
		object := r.object(name)
		observed, _, _ := unstructured.NestedString(object.Object, "status", "observedGeneration")
		now, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		return observed == fmt.Sprint(object.GetGeneration()) && now == phase
	})
}

// setStatus does what the kubectl plugin of Argo Rollouts does to promote or abort.
func (r *argoRig) setStatus(name, status string) {
	r.Helper()
	r.merge(name, `{"status":`+status+`}`, "status")
}

// setSpec changes the spec of a Rollout, as a person does.
func (r *argoRig) setSpec(name, spec string) {
	r.Helper()
	r.merge(name, `{"spec":`+spec+`}`)
}
