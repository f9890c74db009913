package workload

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Newer reports whether resourceVersion a is later than b. Those of one cluster can be compared (KEP-5504). It is false if one of the two is
// not a resourceVersion.
func Newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
