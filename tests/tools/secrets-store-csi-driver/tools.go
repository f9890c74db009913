//go:build tools

// Package tools pins the Secrets Store CSI driver, of which the test bed takes the custom resource definitions. This package is never
// compiled.
package tools

import _ "sigs.k8s.io/secrets-store-csi-driver/apis/v1"
