// Package resource stands in for the names of resources in HashiCorp's own cloud.
package resource

import "errors"

// Resource would be the name of a server in that cloud.
type Resource struct{}

// FromString returns an error.
func FromString(string) (Resource, error) {
	return Resource{}, errors.New("HashiCorp's cloud is not in this build")
}
