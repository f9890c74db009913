//go:build tools

// Package tools pins the Argo Rollouts controller of the test bed. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import _ "github.com/argoproj/argo-rollouts/cmd/rollouts-controller"
