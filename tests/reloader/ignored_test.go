package reloader

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// reloadersClusterRole is reloadersRole for all namespaces, as the chart makes it by default. There is no permission to see the namespaces.
func reloadersClusterRole() string {
	return strings.NewReplacer(
		"kind: Role\nmetadata: {name: theirs, namespace: NAMESPACE}", "kind: ClusterRole\nmetadata: {name: theirs-NAMESPACE}",
		"kind: RoleBinding\nmetadata: {name: theirs, namespace: NAMESPACE}", "kind: ClusterRoleBinding\nmetadata: {name: theirs-NAMESPACE}",
		"kind: Role, name: theirs}", "kind: ClusterRole, name: theirs-NAMESPACE}",
	).Replace(reloadersRole)
}

// theirs grants an account the permissions of a manifest, and returns its kubeconfig. The API server learns of a role by and by, and a command that
// starts before that says what it is refused.
func (r *rig) theirs(manifest string) string {
	r.Helper()
	r.apply(manifest)
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               testbed.ServiceAccountUser(r.namespace, "theirs"),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.namespace, Verb: "list", Resource: "secrets"},
	}}
	testkit.Await(r.T, "the API server knows the permissions", func(ctx context.Context) bool {
		answer, err := r.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed
	})
	kubeconfig, err := plane.ServiceAccountKubeconfig(r.Context(), r.namespace, "theirs")
	testkit.Must(r, err)
	return kubeconfig
}

// The command rolls in the namespaces of other tests, too, so that they must not run meanwhile.
func TestNamespacesAreIgnoredWithoutPermissionToSeeThem(t *testing.T) {
	in, out := newRig(t), newRig(t)
	kubeconfig := in.theirs(reloadersClusterRole())
	for _, r := range []*rig{in, out} {
		r.secret("db", map[string]string{"password": "one"})
		r.deploy("web", auto(), readDB)
	}
	in.startWith(nil, "--kubeconfig", kubeconfig, "--namespaces-to-ignore", "kube-system,"+out.namespace)
	in.rolls("web", func() { in.secret("db", map[string]string{"password": "two"}) })
	before := out.writes("web")
	in.leaves("web", func() { out.secret("db", map[string]string{"password": "two"}) })
	if now := out.writes("web"); now != before {
		t.Errorf("web of the ignored namespace was rolled %d times, want none", now-before)
	}
	in.says("permission missing", 0)
}
