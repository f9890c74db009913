//go:build tools

// Package tools pins Flux's kustomize-controller for the tests of deploy/flux. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import _ "github.com/fluxcd/kustomize-controller"
