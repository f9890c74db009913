//go:build tools

// Package tools pins Flux's source-controller for the tests of deploy/flux. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import _ "github.com/fluxcd/source-controller"
