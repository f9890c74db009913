package workload

import "k8s.io/apimachinery/pkg/util/resourceversion"

// CompareVersions orders resourceVersions, the oldest first. Those of one cluster can be compared (KEP-5504). NoVersion is older than
// all others. It returns 0 if one of them is invalid.
func CompareVersions(a, b string) int {
	switch {
	case a == NoVersion && isVersion(b):
		return -1
	case b == NoVersion && isVersion(a):
		return 1
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}

// isVersion reports whether an object can have the resourceVersion.
func isVersion(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

// Newer reports whether resourceVersion a is later than b, as CompareVersions orders them.
func Newer(a, b string) bool { return CompareVersions(a, b) > 0 }
