// Package gcpckms stands in for the seal of Google Cloud.
package gcpckms

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

// NewWrapper is called if a configuration names the seal.
func NewWrapper() wrapping.Wrapper { panic("the seal gcpckms is not in this build") }
