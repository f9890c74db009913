package manifests

import (
	"cmp"
	"fmt"
)

// Engine is the path of the KV v2 secrets engine that a [SecretStore] reads.
const Engine = "secret"

// SecretStore is a store of External Secrets, with the Secret that holds its token.
type SecretStore struct{ Namespace, Name, Address, Token string }

// YAML returns two documents.
func (s SecretStore) YAML() string {
	return Join(fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: store-token, namespace: %s}
stringData: {token: %s}
`, s.Namespace, s.Token), fmt.Sprintf(`apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: %s, namespace: %s}
spec:
  provider:
    vault:
      server: %s
      path: %s
      version: v2
      auth: {tokenSecretRef: {name: store-token, key: token}}
`, s.Name, s.Namespace, s.Address, Engine))
}

// ExternalSecret copies one property of a secret in a store to the key of the same name in a Secret.
type ExternalSecret struct {
	Namespace, Name, Store string
	// Path is the path of the secret in the store.
	Path string
	// Property is the key to copy. Empty means password.
	Property string
	// Refresh is the field that says when to refresh. Empty means once an hour.
	Refresh string
}

// YAML returns one document.
func (e ExternalSecret) YAML() string {
	property := cmp.Or(e.Property, "password")
	return fmt.Sprintf(`apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: %s, namespace: %s}
spec:
  %s
  secretStoreRef: {kind: SecretStore, name: %s}
  data: [{secretKey: %s, remoteRef: {key: %s, property: %s}}]
`, e.Name, e.Namespace, cmp.Or(e.Refresh, "refreshInterval: 1h"), e.Store, property, e.Path, property)
}
