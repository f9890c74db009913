package workload

import "k8s.io/apimachinery/pkg/util/resourceversion"

// CompareVersions orders resourceVersions, the oldest first. Those of one cluster can be compared (KEP-5504). It returns 0 if one of them is
// invalid.
func CompareVersions(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}

// Newer reports whether resourceVersion a is later than b, as CompareVersions orders them.
func Newer(a, b string) bool { return CompareVersions(a, b) > 0 }
