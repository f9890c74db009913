//go:build tools

// Package tools pins the oldest Helm that docs/reference/compatibility.md names. Each group of servers has a module of its own, since their
// dependencies exclude each other. This package is never compiled.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
