package install

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inPlaceNeeds returns a row for the right of deploy/components/reload-in-place. Without it, the pods are replaced.
func inPlaceNeeds() []need {
	return []need{{
		account: actuatorAccount, right: "list pods", breaks: "the pods of a workload reload", done: (*bench).hasTold, beside: rolls("told"),
	}}
}

// hasTold reports whether the pods of the workload of testdata/inplace.yaml were told of a change.
func (b *bench) hasTold() bool {
	list, err := b.kube.CoreV1().Events(b.namespace).List(b.Context(), metav1.ListOptions{FieldSelector: "reason=ReloadedInPlace"})
	return err == nil && len(list.Items) > 0
}

func TestEachRuleOfReloadInPlaceIsNeeded(t *testing.T) {
	t.Parallel()
	scene := shopScene().with("testdata/inplace.yaml", actuatorAccount, "--reload-in-place", "--reload-delay", "0s")
	eachIsNeeded(t, scene, inPlaceNeeds(), rulesOf(t, "base/rbac.yaml", "components/reload-in-place/rbac.yaml"))
}
