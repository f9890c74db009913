// Package azurekeyvault stands in for the seal of Azure.
package azurekeyvault

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

// NewWrapper is called if a configuration names the seal.
func NewWrapper() wrapping.Wrapper { panic("the seal azurekeyvault is not in this build") }
