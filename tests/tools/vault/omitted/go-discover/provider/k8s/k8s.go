// Package k8s stands in for the discovery of peers in Kubernetes.
package k8s

// Provider finds no peers.
type Provider struct{}
