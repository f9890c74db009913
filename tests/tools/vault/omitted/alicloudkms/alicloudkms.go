// Package alicloudkms stands in for the seal of Alibaba Cloud.
package alicloudkms

import wrapping "github.com/hashicorp/go-kms-wrapping/v2"

// NewWrapper is called if a configuration names the seal.
func NewWrapper() wrapping.Wrapper { panic("the seal alicloudkms is not in this build") }
