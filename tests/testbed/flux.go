package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// FluxNamespace is the namespace of Flux's own objects.
const FluxNamespace = "flux-system"

// StartFlux creates the namespace flux-system, applies the custom resource definitions of Flux's source-controller and
// kustomize-controller, starts both as [FluxUser], and waits until they run, which takes some seconds. There is no
// notification-controller: what they report is in the status of the objects and in Kubernetes Events. Stop ends them with the
// control plane. args are further arguments of both. By default they reconcile the objects of all namespaces, and with
// --watch-all-namespaces=false those of flux-system alone.
func (cp *ControlPlane) StartFlux(ctx context.Context, args ...string) error {
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + FluxNamespace + "\n"
	if err := cp.ApplyYAML(ctx, strings.NewReader(namespace)); err != nil {
		return fmt.Errorf("start flux: %w", err)
	}
	ports, err := process.FreePorts(3)
	if err != nil {
		return fmt.Errorf("start flux: %w", err)
	}
	storage, sourceHealth, kustomizeHealth := process.Address(ports[0]), process.Address(ports[1]), process.Address(ports[2])
	artifacts := filepath.Join(cp.dir, "flux")
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return fmt.Errorf("start flux: %w", err)
	}
	source := append([]string{
		"--storage-path=" + artifacts, "--storage-addr=" + storage, "--storage-adv-addr=" + storage,
		"--health-addr=" + sourceHealth,
	}, args...)
	if err := cp.startFluxController(ctx, build.SourceController, sourceHealth, source...); err != nil {
		return err
	}
	kustomize := append([]string{
		"--health-addr=" + kustomizeHealth,
		// Upstream checks only twice a minute whether the dependencies of a Kustomization are ready.
		"--requeue-dependency=1s",
	}, args...)
	return cp.startFluxController(ctx, build.KustomizeController, kustomizeHealth, kustomize...)
}

func (cp *ControlPlane) startFluxController(ctx context.Context, name, health string, args ...string) error {
	// They have no flag for the kubeconfig.
	env := []string{
		"KUBECONFIG=" + cp.kubeconfig(FluxUser), "RUNTIME_NAMESPACE=" + FluxNamespace,
		// When kustomize-controller starts, it removes folders there that look like its own, even those of another control plane's.
		"TMPDIR=" + filepath.Join(cp.dir, "flux"),
	}
	common := []string{"--metrics-addr=0", "--events-addr=", "--log-encoding=json"}
	_, err := cp.startHealthy(ctx, "flux: "+name, "http://"+health+"/readyz", env, name, append(common, args...)...)
	return err
}
