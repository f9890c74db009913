package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// auditPolicy logs who asked for what, with no bodies. The stage RequestReceived is omitted, so that each request has one
// entry. Only watches have two, at their start and at their end. Nobody looks for what the servers themselves ask for, nor for what
// a test reads as the admin, which are most of all requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver", "` + controllersUser + `", "` + nodeUser + `"]
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: None
  users: ["` + adminUser + `"]
  verbs: [get, list, watch]
- level: Metadata
`

func (cp *ControlPlane) startAPIServer(ctx context.Context) error {
	policy := filepath.Join(cp.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	args := []string{
		"--etcd-servers=" + cp.etcdURL(),
		"--bind-address=" + process.Loopback,
		"--advertise-address=" + process.Loopback,
		// The endpoints of the Service "kubernetes" may not be on loopback, and there is no pod that would use them.
		"--endpoint-reconciler-type=none",
		"--secure-port=" + strconv.Itoa(cp.ports.apiServer),
		"--tls-cert-file=" + cp.pki.cert,
		"--tls-private-key-file=" + cp.pki.key,
		"--token-auth-file=" + cp.tokenFile(),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + cp.pki.accountsPub,
		"--service-account-signing-key-file=" + cp.pki.accountsKey,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		// Nothing here has to be kept from taking another's share, and each request would be matched with levels of priority and wait for a seat.
		"--enable-priority-and-fairness=false",
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + cp.auditLog(),
		// The log is never rotated, so that offsets into it stay valid.
		"--audit-log-maxsize=0",
	}
	p, err := cp.launch(build.APIServer, append(args, cp.opts.APIServerArgs...)...)
	if err != nil {
		return err
	}
	return cp.healthy(ctx, p, cp.url()+"/readyz")
}

// KillAPIServer ends the API server like a crash, and waits until it is gone. It does nothing if the server is already down.
// The other servers keep running and wait for it to come back.
func (cp *ControlPlane) KillAPIServer() { cp.kill(build.APIServer) }

// StartAPIServer starts the API server again after [ControlPlane.KillAPIServer], on the same port and with the same data and
// credentials, and waits until it is ready, which takes two seconds. Its watch cache starts empty: a client that resumes an
// older watch is told that its resourceVersion has expired, and lists again. The other servers reconnect with a growing
// backoff, so that a rollout right after the start may take some seconds longer than usual.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error {
	if err := cp.startAPIServer(ctx); err != nil {
		return fmt.Errorf("start the API server again: %w", err)
	}
	return nil
}

// RestartAPIServer calls [ControlPlane.KillAPIServer] and then [ControlPlane.StartAPIServer].
func (cp *ControlPlane) RestartAPIServer(ctx context.Context) error {
	cp.KillAPIServer()
	return cp.StartAPIServer(ctx)
}
