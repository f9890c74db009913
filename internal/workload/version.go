package workload

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Newer reports whether resourceVersion a is later than b. The resourceVersions of one cluster can be compared (KEP-5504). It returns false
// if one of them is invalid.
func Newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
