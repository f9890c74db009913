// Package ocikms stands in for the seal of Oracle Cloud.
package ocikms

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

// Keys of the configuration of the seal.
const (
	KmsConfigKeyId              = "key_id"
	KmsConfigCryptoEndpoint     = "crypto_endpoint"
	KmsConfigManagementEndpoint = "management_endpoint"
)

// NewWrapper is called if a configuration names the seal.
func NewWrapper() wrapping.Wrapper { panic("the seal ocikms is not in this build") }
