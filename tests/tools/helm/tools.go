//go:build tools

// Package tools pins Helm, which renders and checks the chart as its users do. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
