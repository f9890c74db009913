package reloader

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// roleBinding binds the account of the command to the ClusterRole ROLE.
const roleBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reloader-ROLE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ROLE}
subjects: [{kind: ServiceAccount, name: reloader, namespace: keyturn-system}]
`

// serveRollouts has the API server serve Rollouts, and lets the command roll them.
func serveRollouts(t *testing.T) {
	t.Helper()
	serve(t, build.ArgoRollouts, "argo-rollouts/rbac.yaml", "keyturn-actuator-argo-rollouts", "Rollout")
}

// serveClasses has the API server serve the kinds of the Secrets Store CSI driver, and lets the command see them.
func serveClasses(t *testing.T) {
	t.Helper()
	serve(t, build.SecretsStore, "secret-provider-classes/watcher.yaml", "keyturn-watcher-secret-provider-classes")
}

// serve has the API server serve kinds of an operator, or all that it has, and grants the command the role that a component in deploy has for them.
func serve(t *testing.T, operator, component, role string, kinds ...string) {
	t.Helper()
	testkit.Must(t, plane.ApplyKindsOf(t.Context(), operator, kinds...))
	testkit.Must(t, plane.ApplyKinds(t.Context(), testbed.RBACKinds(), "../../deploy/components/"+component))
	testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(strings.ReplaceAll(roleBinding, "ROLE", role))))
}
