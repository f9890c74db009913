//go:build tools

// Package tools pins golangci-lint, which `make lint` builds and runs; it is never compiled.
package tools

import _ "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"
