package testbed

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// ExternalSecretsOptions configure the External Secrets Operator. The zero value means upstream's defaults.
type ExternalSecretsOptions struct {
	// Concurrent is the number of objects of each kind that are reconciled concurrently. 0 means 1.
	Concurrent int
	// MetricsAddress is the host and port at which it serves Prometheus metrics, such as the depths of its queues, at
	// /metrics. Empty means that they are not served.
	MetricsAddress string
	// Args are further arguments. They take precedence over those of the test bed.
	Args []string
}

// StartExternalSecrets applies the custom resource definitions of the External Secrets Operator, starts its controllers as
// [externalSecretsUser], and waits until they run, which takes some seconds. There is no webhook. It may be started again,
// with other options, after the process has ended.
func (cp *ControlPlane) StartExternalSecrets(ctx context.Context, opts ExternalSecretsOptions) (*process.Process, error) {
	port, err := process.FreePort()
	if err != nil {
		return nil, fmt.Errorf("start External Secrets: %w", err)
	}
	metrics, health := cmp.Or(opts.MetricsAddress, "0"), "http://"+process.Address(port)+"/healthz" // "0" is off.
	args := []string{"--concurrent=" + strconv.Itoa(cmp.Or(opts.Concurrent, 1))}
	if build.Oldest() {
		// It has no health probe.
		metrics = cmp.Or(opts.MetricsAddress, process.Address(port))
		health = "http://" + metrics + "/metrics"
	} else {
		args = append(args, "--live-addr="+process.Address(port))
	}
	args = append(args, "--metrics-addr="+metrics)
	// It has no flag for the kubeconfig.
	env := []string{"KUBECONFIG=" + cp.kubeconfig(externalSecretsUser)}
	p, err := cp.startOperator(ctx, env, build.ExternalSecrets, append(args, opts.Args...)...)
	if err != nil {
		return nil, fmt.Errorf("start External Secrets: %w", err)
	}
	if err := cp.healthy(ctx, p, health); err != nil {
		p.Kill()
		return nil, fmt.Errorf("start External Secrets: %w", err)
	}
	return p, nil
}
