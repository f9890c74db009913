// Package manifests makes the YAML of the objects that External Secrets, cert-manager and the Secrets Store CSI driver work on. Every
// value is known to the test and needs no quoting.
package manifests

import "strings"

// Join joins documents into one YAML stream.
func Join(documents ...string) string { return strings.Join(documents, "---\n") }
