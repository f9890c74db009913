package install

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

// targetNeeds has a row for each right on a resource of a target. Those on others are the same: tests/chart compares them with what the recipes list.
func targetNeeds() []need {
	const resource = "prometheuses.monitoring.coreos.com"
	return append(reads(actuatorAccount, resource, "a Prometheus is rolled", (*bench).hasRolledPrometheus), need{
		account: actuatorAccount, right: "patch " + resource, breaks: "a Prometheus is rolled",
		done: (*bench).hasRolledPrometheus, beside: rolls("web"),
	})
}

// hasRolledPrometheus reports whether the Prometheus of testdata/prometheus.yaml was rolled.
func (b *bench) hasRolledPrometheus() bool {
	resource := schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheuses"}
	object, err := b.custom.Resource(resource).Namespace(b.namespace).Get(b.Context(), "metrics", metav1.GetOptions{})
	if err != nil {
		b.Error(err)
		return false
	}
	revision, _, _ := unstructured.NestedString(object.Object, "spec", "podMetadata", "annotations", "keyturn.dev/revision")
	return revision != ""
}

func TestEachRuleOfATargetIsNeeded(t *testing.T) {
	t.Parallel()
	if err := plane.ApplyKindsOf(t.Context(), build.PrometheusOperator); err != nil {
		t.Fatal(err)
	}
	const recipe = "../../deploy/targets/prometheus-operator/prometheus-operator.yaml"
	scene := shopScene().with("testdata/prometheus.yaml", actuatorAccount, "--targets-config", recipe)
	eachIsNeeded(t, scene, targetNeeds(), rulesOf(t, "base/rbac.yaml", "targets/prometheus-operator/rbac.yaml"))
}
