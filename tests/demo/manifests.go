package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

const (
	// mount is where the secrets engine of the store is.
	mount = "secret"
	// secretKey is the one key that each secret in the store has, and each Secret that is made of one.
	secretKey = "password"
)

// storePaths says what each ExternalSecret reads.
var storePaths = map[string]string{"db": "shop/db", "mail": "shop/mail", "license": "shop/license"}

// newReaders makes the Deployments: two that read one Secret, and one for each of the others.
func newReaders() []*appsv1.Deployment {
	var deployments []*appsv1.Deployment
	for _, reader := range []struct {
		name     string
		replicas int32
		secret   string
	}{
		{"web", 3, "db"}, {"jobs", 2, "db"}, {"mailer", 2, "mail"}, {"legacy", 1, "license"}, {"gateway", 2, "gateway-tls"},
	} {
		deployment := programs.NewDeployment(namespace, reader.name, reader.replicas, optIn())
		programs.ReadSecret(&deployment.Spec.Template, reader.secret)
		deployments = append(deployments, deployment)
	}
	return deployments
}

func (s *stage) createAll(ctx context.Context, deployments []*appsv1.Deployment) error {
	for _, deployment := range deployments {
		if _, err := s.client.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// chainManifests are what External Secrets and cert-manager are told, for a store at an address with a token.
func chainManifests(address, token string) string {
	manifests := []string{`
apiVersion: v1
kind: Secret
metadata: {name: store-token, namespace: NAMESPACE}
stringData: {token: TOKEN}
---
apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: main, namespace: NAMESPACE}
spec:
  provider:
    vault:
      server: ADDRESS
      path: MOUNT
      version: v2
      auth: {tokenSecretRef: {name: store-token, key: token}}
`, `
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self, namespace: NAMESPACE}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: gateway, namespace: NAMESPACE}
spec:
  dnsNames: [gateway.test]
  secretName: gateway-tls
  privateKey: {algorithm: ECDSA, size: 256}
  issuerRef: {kind: Issuer, name: self}
`}
	for _, name := range slices.Sorted(maps.Keys(storePaths)) {
		policy := "refreshInterval: 1h"
		if name == "license" {
			policy = "refreshPolicy: CreatedOnce"
		}
		manifests = append(manifests, fmt.Sprintf(`
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: %s, namespace: NAMESPACE}
spec:
  %s
  secretStoreRef: {kind: SecretStore, name: main}
  data:
  - secretKey: KEY
    remoteRef: {key: %s, property: KEY}
`, name, policy, storePaths[name]))
	}
	values := strings.NewReplacer("NAMESPACE", namespace, "TOKEN", token, "ADDRESS", address, "MOUNT", mount, "KEY", secretKey)
	return values.Replace(strings.Join(manifests, "---"))
}
