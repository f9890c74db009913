//go:build tools

// Package tools pins Vault, the secret store of the tests. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import _ "github.com/hashicorp/vault"
