//go:build tools

// Package tools pins govulncheck, which `make vulncheck` builds and runs; it is never compiled.
package tools

import _ "golang.org/x/vuln/cmd/govulncheck"
