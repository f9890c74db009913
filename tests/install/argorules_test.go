package install

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

// argoNeeds has a row for each right of deploy/components/argo-rollouts.
func argoNeeds() []need {
	const resource = "rollouts.argoproj.io"
	return append(reads(actuatorAccount, resource, "a Rollout is rolled", (*bench).hasRolledRollout), need{
		account: actuatorAccount, right: "patch " + resource, breaks: "a Rollout is rolled",
		done: (*bench).hasRolledRollout, beside: rolls("web"),
	})
}

// hasRolledRollout reports whether the Rollout of testdata/rollout.yaml was rolled.
func (b *bench) hasRolledRollout() bool {
	resource := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	object, err := b.custom.Resource(resource).Namespace(b.namespace).Get(b.Context(), "edge", metav1.GetOptions{})
	if err != nil {
		b.Error(err)
		return false
	}
	revision, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", "keyturn.dev/revision")
	return revision != ""
}

// argoScene is the shop with a Rollout, which no controller takes care of.
func argoScene() scene {
	return shopScene().with("testdata/rollout.yaml", actuatorAccount, "--argo-rollouts")
}

func TestEachRuleOfArgoRolloutsIsNeeded(t *testing.T) {
	t.Parallel()
	if err := plane.ApplyKindsOf(t.Context(), build.ArgoRollouts); err != nil {
		t.Fatal(err)
	}
	eachIsNeeded(t, argoScene(), argoNeeds(), rulesOf(t, "base/rbac.yaml", "components/argo-rollouts/rbac.yaml"))
}
