//go:build tools

// Package tools pins gotestsum, which `make e2e` builds and runs; it is never compiled.
package tools

import _ "gotest.tools/gotestsum"
