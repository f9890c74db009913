package programs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// oneAccount gives one account the rights of both programs, and of nothing else.
const oneAccount = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reloader, namespace: keyturn-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reloader-watcher}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: keyturn-watcher}
subjects: [{kind: ServiceAccount, name: reloader, namespace: keyturn-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reloader-actuator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: keyturn-actuator}
subjects: [{kind: ServiceAccount, name: reloader, namespace: keyturn-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reloader-actuator-jobs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: keyturn-actuator-jobs}
subjects: [{kind: ServiceAccount, name: reloader, namespace: keyturn-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reloader-watcher-namespaces}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: keyturn-watcher-namespaces}
subjects: [{kind: ServiceAccount, name: reloader, namespace: keyturn-system}]
`

// Reloader starts the command reloader: both programs in one process, with one account.
type Reloader struct {
	binary, kubeconfig string
	started            atomic.Int64
}

// NewReloader builds the command, with the race detector in it where race is true, and gives its account the rights of the two programs in
// the manifests of the folder deploy.
func NewReloader(ctx context.Context, cp *testbed.ControlPlane, deploy string, race bool) (*Reloader, error) {
	binary, err := build.Program(ctx, "./cmd/reloader", race)
	if err != nil {
		return nil, err
	}
	return NewReloaderFrom(ctx, cp, deploy, binary)
}

// NewReloaderFrom is [NewReloader] with a binary that is there.
func NewReloaderFrom(ctx context.Context, cp *testbed.ControlPlane, deploy, binary string) (*Reloader, error) {
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + SystemNamespace + "\n"
	if err := cp.ApplyYAML(ctx, strings.NewReader(namespace)); err != nil {
		return nil, err
	}
	manifests := []string{
		filepath.Join(deploy, "base/rbac.yaml"), filepath.Join(deploy, "components/namespace-selector/rbac.yaml"),
		filepath.Join(deploy, "components/jobs/rbac.yaml"),
	}
	if err := cp.ApplyKinds(ctx, testbed.RBACKinds(), manifests...); err != nil {
		return nil, err
	}
	if err := cp.ApplyYAML(ctx, strings.NewReader(oneAccount)); err != nil {
		return nil, err
	}
	kubeconfig, err := cp.ServiceAccountKubeconfig(ctx, SystemNamespace, "reloader")
	return &Reloader{binary: binary, kubeconfig: kubeconfig}, err
}

// Binary is the path of the command.
func (r *Reloader) Binary() string { return r.binary }

// Start starts the command with its state and log in a directory. Arguments and environment are added to what a test needs.
func (r *Reloader) Start(dir string, args, env []string) (*Program, error) {
	process, err := process.Start(process.Options{
		Path: r.binary, Env: env, Name: "reloader",
		Args: append([]string{
			"--kubeconfig", r.kubeconfig, "--state-dir", filepath.Join(dir, "state"), "--metrics-addr", "127.0.0.1:0",
			"--log-format", "json", "--log-level", "debug",
		}, args...),
		LogFile: filepath.Join(dir, fmt.Sprintf("reloader-%d.log", r.started.Add(1))),
	})
	if err != nil {
		return nil, err
	}
	return &Program{Process: process, probes: "metrics"}, nil
}
