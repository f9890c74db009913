//go:build tools

// Package tools pins the NATS server of the test bed, and the tool that makes its users' keys. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import (
	_ "github.com/nats-io/nats-server/v2"
	_ "github.com/nats-io/nkeys/nk"
)
