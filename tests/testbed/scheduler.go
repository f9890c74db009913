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

// schedulerConfig takes the path of the kubeconfig and lifts the limit of 50 pods a second.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: 500
  burst: 1000
leaderElection:
  leaderElect: false
`

func (cp *ControlPlane) startScheduler() (ready, error) {
	path := filepath.Join(cp.dir, "scheduler.yaml")
	config := fmt.Sprintf(schedulerConfig, cp.kubeconfig(schedulerUser))
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("configure the scheduler: %w", err)
	}
	p, err := cp.launch(build.Scheduler,
		"--config="+path,
		"--bind-address="+process.Loopback,
		"--secure-port="+strconv.Itoa(cp.ports.scheduler),
		"--tls-cert-file="+cp.pki.cert,
		"--tls-private-key-file="+cp.pki.key)
	if err != nil {
		return nil, err
	}
	path = "/readyz"
	if build.Oldest() {
		path = "/healthz" // There is no other before 1.31.
	}
	return func(ctx context.Context) error {
		return cp.healthy(ctx, p, "https://"+process.Address(cp.ports.scheduler)+path)
	}, nil
}
