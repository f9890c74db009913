package testbed

import (
	"context"
	"fmt"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// clusterIssuerNamespace is where cert-manager looks for the Secrets of ClusterIssuers.
const clusterIssuerNamespace = "kube-system"

// StartCertManager applies the custom resource definitions of cert-manager, starts its controllers as [certManagerUser], and
// waits until they run, which takes some seconds. They support the issuers CA, self-signed and Vault. There is no webhook, so
// objects that it would refuse are accepted. It may be started again after the process has ended.
func (cp *ControlPlane) StartCertManager(ctx context.Context) (*process.Process, error) {
	p, err := cp.startOperator(ctx, nil, build.CertManager,
		"-kubeconfig="+cp.kubeconfig(certManagerUser),
		"-cluster-resource-namespace="+clusterIssuerNamespace,
		"-v=2")
	if err != nil {
		return nil, fmt.Errorf("start cert-manager: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, process.StartTimeout)
	defer cancel()
	if _, err := p.WaitLog(ctx, "the controllers are running"); err != nil {
		p.Kill()
		return nil, fmt.Errorf("start cert-manager: %w", err)
	}
	return p, nil
}
