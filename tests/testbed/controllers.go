package testbed

import (
	"context"
	"strconv"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// startControllers starts the controller manager. Its controllers use service accounts of their own, as in any real
// cluster, and so have a user each in the audit log.
func (cp *ControlPlane) startControllers() (ready, error) {
	const syncs = "20" // of Deployments and the like that are worked on at a time; upstream: 5
	args := []string{
		"--kubeconfig=" + cp.kubeconfig(controllersUser),
		"--bind-address=" + process.Loopback,
		"--secure-port=" + strconv.Itoa(cp.ports.controllers),
		"--tls-cert-file=" + cp.pki.cert,
		"--tls-private-key-file=" + cp.pki.key,
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + cp.pki.accountsKey,
		"--root-ca-file=" + cp.pki.ca,
		// A busy machine, or an API server that is down, delays the heartbeats of kwok's nodes. The controller would then make all pods of a
		// node unready, and kwok does not make them ready again, as a kubelet would.
		"--node-monitor-grace-period=24h",
		"--kube-api-qps=" + strconv.Itoa(cp.opts.ControllerQPS),
		"--kube-api-burst=" + strconv.Itoa(cp.opts.ControllerBurst),
		"--concurrent-deployment-syncs=" + syncs,
		"--concurrent-replicaset-syncs=" + syncs,
		"--concurrent-statefulset-syncs=" + syncs,
	}
	if !build.Oldest() {
		args = append(args, "--concurrent-daemonset-syncs="+syncs)
	}
	p, err := cp.launch(build.ControllerManager, args...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return cp.healthy(ctx, p, "https://"+process.Address(cp.ports.controllers)+"/healthz")
	}, nil
}
