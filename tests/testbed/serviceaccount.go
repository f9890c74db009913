package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// tokenLifetime is the lifetime of service account tokens. It is longer than any test or benchmark runs.
const tokenLifetime = 24 * time.Hour

// ServiceAccountConfig returns a configuration with a real token of a service account, which must exist, and so with exactly
// its permissions. The limits of requests are client-go's defaults, as for a program in a pod.
func (cp *ControlPlane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := cp.serviceAccountToken(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return cp.tokenConfig(token)
}

// ServiceAccountKubeconfig is like [ControlPlane.ServiceAccountConfig], but returns the path of a kubeconfig, for a program
// that runs as a process. The file exists until Stop.
func (cp *ControlPlane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	token, err := cp.serviceAccountToken(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	// Names may have dots and dashes, but no colons, so no two accounts share a file.
	path := filepath.Join(cp.dir, "sa:"+namespace+":"+name+".kubeconfig")
	return path, writeKubeconfig(path, cp.url(), cp.pki.ca, name, token)
}

// ServiceAccountUser returns the name under which a service account appears in the audit log.
func ServiceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

func (cp *ControlPlane) serviceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(tokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	got, err := cp.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("get a token of service account %s/%s: %w", namespace, name, err)
	}
	return got.Status.Token, nil
}
