package events

import "cmp"

// CompareVersions compares two resourceVersions, which are decimal numbers. The empty one is the lowest. The order is meaningful only for two
// versions of one cluster.
func CompareVersions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
