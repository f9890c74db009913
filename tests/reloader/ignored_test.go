package reloader

import (
	"strings"
	"testing"
)

// reloadersClusterRole is reloadersRole for all namespaces, as the chart makes it by default. There is no permission to see the namespaces.
func reloadersClusterRole() string {
	return strings.NewReplacer(
		"kind: Role\nmetadata: {name: theirs, namespace: NAMESPACE}", "kind: ClusterRole\nmetadata: {name: theirs-NAMESPACE}",
		"kind: RoleBinding\nmetadata: {name: theirs, namespace: NAMESPACE}", "kind: ClusterRoleBinding\nmetadata: {name: theirs-NAMESPACE}",
		"kind: Role, name: theirs}", "kind: ClusterRole, name: theirs-NAMESPACE}",
	).Replace(reloadersRole)
}

// theirs grants an account the permissions of a manifest, and returns its kubeconfig.
func (r *rig) theirs(manifest string) string {
	r.Helper()
	r.apply(manifest)
	kubeconfig, err := plane.ServiceAccountKubeconfig(r.Context(), r.namespace, "theirs")
	if err != nil {
		r.Fatal(err)
	}
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
