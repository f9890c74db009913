package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// kwokConfig lets kwok play the stages of many pods at once. With upstream's four at a time, kwok and not the controllers
// would determine how long a large rollout takes. The other values are upstream's defaults, because a configuration from a
// file gets none.
const kwokConfig = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  podPlayStageParallelism: 16
  nodePlayStageParallelism: 4
  nodeLeaseParallelism: 4
  nodeLeaseDurationSeconds: 40
  podsOnNodeSyncParallelism: 1
  enablePodsOnNodeSyncListPager: true
---
`

func (cp *ControlPlane) startKwok() (ready, error) {
	stages, err := os.ReadFile(build.StagesPath(filepath.Dir(cp.binaries[build.Kwok])))
	if err != nil {
		return nil, fmt.Errorf("configure kwok: %w", err)
	}
	path := filepath.Join(cp.dir, "kwok.yaml")
	if err := os.WriteFile(path, append([]byte(kwokConfig), stages...), 0o600); err != nil {
		return nil, fmt.Errorf("configure kwok: %w", err)
	}
	p, err := cp.launch(build.Kwok,
		"--kubeconfig="+cp.kubeconfig(kwokUser),
		"--config="+path,
		"--manage-all-nodes=true",
		"--cidr=10.64.0.0/16",
		"--node-ip="+process.Loopback,
		"--server-address="+process.Address(cp.ports.kwok))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return cp.healthy(ctx, p, "http://"+process.Address(cp.ports.kwok)+"/healthz")
	}, nil
}
