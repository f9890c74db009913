//go:build tools

// Package tools pins Prometheus Operator for the test bed. Each group of servers has a module of its own, since their dependencies exclude each
// other. This package is never compiled.
package tools

import _ "github.com/prometheus-operator/prometheus-operator/cmd/operator"
