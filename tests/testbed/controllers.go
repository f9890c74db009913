package testbed

import (
	"context"
	"strconv"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// startControllers starts the controllers. As in any real cluster, each of them uses its own service account. The flags are those of upstream's
// controller manager, which the oldest version runs. The newest one runs our own main over the controllers that tests need, see
// tests/tools/control-plane, which ignores the flags that it does not know.
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
		// If the machine is busy or the API server is down, the heartbeats of the node are delayed. Upstream's controller would then make all
		// its pods unready, and the node, unlike a kubelet, does not make them ready again.
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
