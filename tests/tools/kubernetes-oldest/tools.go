//go:build tools

// Package tools pins the programs of the oldest release of Kubernetes that Keyturn supports, for `make e2e-oldest`. It has a module of
// its own, because the dependencies of two releases exclude each other. This package is never compiled.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
