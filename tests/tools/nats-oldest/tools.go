//go:build tools

// Package tools pins the oldest NATS server that docs/reference/compatibility.md names. It has a module of its own, since a module has one release of it.
// This package is never compiled.
package tools

import _ "github.com/nats-io/nats-server/v2"
