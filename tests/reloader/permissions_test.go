package reloader

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// reloadersRole is what the Role of Reloader's chart allows by default. There is no permission to watch workloads.
const reloadersRole = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: theirs, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: theirs, namespace: NAMESPACE}
rules:
  - {apiGroups: [""], resources: [secrets, configmaps], verbs: [list, get, watch]}
  - {apiGroups: [apps], resources: [deployments, daemonsets, statefulsets], verbs: [list, get, update, patch]}
  - {apiGroups: [batch], resources: [cronjobs], verbs: [list, get]}
  - {apiGroups: [batch], resources: [jobs], verbs: [create, delete, list, get]}
  - {apiGroups: [""], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: theirs, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: theirs}
subjects: [{kind: ServiceAccount, name: theirs, namespace: NAMESPACE}]
`

// apply applies manifests to the namespace of the rig, which they call NAMESPACE.
func (r *rig) apply(manifests string) {
	r.Helper()
	if err := plane.ApplyYAML(r.Context(), strings.NewReader(strings.ReplaceAll(manifests, "NAMESPACE", r.namespace))); err != nil {
		r.Fatal(err)
	}
}

func TestThePermissionsOfReloaderAreEnough(t *testing.T) {
	r := newRig(t)
	r.apply(reloadersRole)
	kubeconfig, err := plane.ServiceAccountKubeconfig(t.Context(), r.namespace, "theirs")
	if err != nil {
		t.Fatal(err)
	}
	r.secret("db", map[string]string{"password": "one"})
	r.start("--kubeconfig", kubeconfig)
	r.deploy("web", auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, "db") })
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "three"}) })
	if lines := strings.Count(r.program.Output(), "no permission to watch; listing instead"); lines != 5 {
		t.Errorf("it said %d times that it may not watch, want once for each of the five kinds", lines)
	}
	if strings.Contains(r.program.Output(), `"level":"ERROR"`) {
		t.Error("it logged errors")
	}
}

func TestMetricsAreServedOnceTheSourcesAreSeen(t *testing.T) {
	r := newRig(t)
	account, role, _ := strings.Cut(reloadersRole, "---\n")
	r.apply(account)
	kubeconfig, err := plane.ServiceAccountKubeconfig(t.Context(), r.namespace, "theirs")
	if err != nil {
		t.Fatal(err)
	}
	r.launch(nil, "--namespaces", r.namespace, "--kubeconfig", kubeconfig)
	// It is alive, but Reloader's chart must not call a pod ready that sees nothing.
	testkit.Await(t, "it is refused to list", func(context.Context) bool { return strings.Contains(r.program.Output(), "is forbidden") })
	for path, want := range map[string]int{"/live": http.StatusOK, "/metrics": http.StatusServiceUnavailable} {
		if code, _, err := r.program.Get(t.Context(), "metrics", path); err != nil || code != want {
			t.Errorf("%s: got %d, %v, want %d", path, code, err, want)
		}
	}
	r.apply(role)
	testkit.Await(t, "the metrics are served", func(ctx context.Context) bool {
		code, _, err := r.program.Get(ctx, "metrics", "/metrics")
		return err == nil && code == http.StatusOK
	})
}
