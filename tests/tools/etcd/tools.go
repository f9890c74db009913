//go:build tools

// Package tools pins etcd, the store of the test bed. Each group of servers
// has a module of its own, since their dependencies exclude each other. This package is never compiled.
package tools

import _ "go.etcd.io/etcd/server/v3"
