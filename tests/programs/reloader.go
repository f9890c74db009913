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

const (
	// oneAccount is an account that has the rights of both programs, each by boundRole, and of nothing else.
	oneAccount = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reloader, namespace: keyturn-system}
`
	boundRole = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reloader-ROLE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: keyturn-ROLE}
subjects: [{kind: ServiceAccount, name: reloader, namespace: keyturn-system}]
`
)

// Reloader starts keyturn reloader: both programs in one process, with one account.
type Reloader struct {
	binary, kubeconfig string
	started            atomic.Int64
}

// NewReloader builds the command, with the race detector in it where race is true, and gives its account the rights of the two programs in
// the manifests of the folder deploy.
func NewReloader(ctx context.Context, cp *testbed.ControlPlane, deploy string, race bool) (*Reloader, error) {
	binary, err := build.Program(ctx, "./cmd/keyturn", race)
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
	account := []string{oneAccount}
	for _, role := range []string{"watcher", "actuator", "actuator-jobs", "watcher-namespaces"} {
		account = append(account, strings.ReplaceAll(boundRole, "ROLE", role))
	}
	if err := cp.ApplyYAML(ctx, strings.NewReader(strings.Join(account, ""))); err != nil {
		return nil, err
	}
	kubeconfig, err := cp.ServiceAccountKubeconfig(ctx, SystemNamespace, "reloader")
	return &Reloader{binary: binary, kubeconfig: kubeconfig}, err
}

// Binary is the path of the binary, whose first argument is reloader.
func (r *Reloader) Binary() string { return r.binary }

// Run starts keyturn run with the same account, with its streams and log in a directory, and its keys in Secrets of the namespace where it may make
// them. NATS listens at an address of loopback.
func (r *Reloader) Run(dir, namespace, nats string, args ...string) (*Program, error) {
	return r.start("run", dir, &Program{}, []string{"GORACE=atexit_sleep_ms=0", "POD_NAMESPACE=" + namespace}, append([]string{
		"run", "--cluster", "demo", "--kubeconfig", r.kubeconfig, "--nats-store-dir", filepath.Join(dir, "nats"), "--nats-listen", nats,
		"--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0", "--log-level", "debug",
	}, args...))
}

// Start starts the program with its state and log in a directory. Arguments and environment are added to what a test needs.
func (r *Reloader) Start(dir string, args, env []string) (*Program, error) {
	return r.start("reloader", dir, &Program{probes: "metrics"}, env, append([]string{
		"reloader", "--kubeconfig", r.kubeconfig, "--state-dir", filepath.Join(dir, "state"), "--metrics-addr", "127.0.0.1:0",
		"--log-format", "json", "--log-level", "debug",
	}, args...))
}

func (r *Reloader) start(name, dir string, program *Program, env, args []string) (*Program, error) {
	started, err := process.Start(process.Options{
		Path: r.binary, Args: args, Env: env, Name: name, LogFile: filepath.Join(dir, fmt.Sprintf("%s-%d.log", name, r.started.Add(1))),
	})
	if err != nil {
		return nil, err
	}
	program.Process = started
	return program, nil
}
