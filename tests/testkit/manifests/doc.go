// Package manifests returns the YAML of objects of External Secrets, cert-manager and the Secrets Store CSI driver. The tests must
// pass only values that need no quoting.
package manifests

import "strings"

// Join joins documents into one YAML stream.
func Join(documents ...string) string { return strings.Join(documents, "---\n") }
