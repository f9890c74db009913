//go:build tools

// Package tools pins the Kubernetes programs of the test bed. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
