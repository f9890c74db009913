//go:build tools

// Package tools pins Jaeger, which the tests send traces to and ask for them. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import _ "github.com/jaegertracing/jaeger/cmd/all-in-one"
