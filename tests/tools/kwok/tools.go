//go:build tools

// Package tools pins kwok, the fake kubelet of the test bed. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
