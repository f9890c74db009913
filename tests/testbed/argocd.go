package testbed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// ArgoCDNamespace is the namespace of Argo CD's own objects.
const ArgoCDNamespace = "argocd"

// argoCDObjects are the objects that Argo CD's API server creates when it first starts. It does not run here.
const argoCDObjects = `
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, labels: {app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: nobody-logs-in}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default}
spec:
  sourceRepos: ['*']
  destinations: [{namespace: '*', server: '*'}]
  clusterResourceWhitelist: [{group: '*', kind: '*'}]
`

// StartArgoCD creates the namespace argocd, applies the custom resource definitions of Argo CD and its configuration, starts its repository
// server and its application controller as [ArgoCDUser], and waits until they run, which takes some seconds. It may be started again after
// the process has ended.
func (cp *ControlPlane) StartArgoCD(ctx context.Context) (*process.Process, error) {
	binary, err := cp.prepareArgoCD(ctx)
	if err != nil {
		return nil, fmt.Errorf("start Argo CD: %w", err)
	}
	ports, err := process.FreePorts(3)
	if err != nil {
		return nil, fmt.Errorf("start Argo CD: %w", err)
	}
	dir := filepath.Join(cp.dir, "argo-cd")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start Argo CD: %w", err)
	}
	kubeconfig := cp.kubeconfig(ArgoCDUser)
	env := []string{
		// It also uses the kubeconfig for the cluster that it runs in.
		"ARGOCD_FAKE_IN_CLUSTER=true", "KUBECONFIG=" + kubeconfig,
		"ARGOCD_GPG_ENABLED=false", "ARGOCD_ASK_PASS_SOCK=" + filepath.Join(dir, "ask.sock"),
		"TMPDIR=" + dir, // repositories are cloned there
		"PATH=" + filepath.Dir(binary) + string(filepath.ListSeparator) + os.Getenv("PATH"),
	}
	p, err := cp.startOperator(ctx, env, build.ArgoCD,
		"-kubeconfig="+kubeconfig, "-namespace="+ArgoCDNamespace,
		"-repo-server-port="+strconv.Itoa(ports[0]), "-repo-server-metrics-port="+strconv.Itoa(ports[1]), "-metrics-port="+strconv.Itoa(ports[2]))
	if err != nil {
		return nil, fmt.Errorf("start Argo CD: %w", err)
	}
	for _, port := range ports[1:] {
		if err := cp.healthy(ctx, p, "http://"+process.Address(port)+"/healthz"); err != nil {
			p.Kill()
			return nil, fmt.Errorf("start Argo CD: %w", err)
		}
	}
	return p, nil
}

// prepareArgoCD creates what Argo CD's programs need at their start, and returns the path of the binary.
func (cp *ControlPlane) prepareArgoCD(ctx context.Context) (string, error) {
	binary, err := build.Binary(ctx, cp.opts.Log, build.ArgoCD)
	if err != nil {
		return "", err
	}
	if err := cp.ApplyKindsOf(ctx, build.ArgoCD); err != nil {
		return "", err
	}
	config, err := os.ReadFile(build.ArgoCDConfigPath(filepath.Dir(binary)))
	if err != nil {
		return "", err
	}
	objects, err := ReadManifests(bytes.NewReader(append([]byte(argoCDObjects+"\n---\n"), config...)))
	if err != nil {
		return "", err
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(ArgoCDNamespace)
	for _, object := range objects {
		object.SetNamespace(ArgoCDNamespace)
	}
	return binary, cp.apply(ctx, append([]*unstructured.Unstructured{namespace}, objects...))
}
