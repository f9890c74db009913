package events

import "cmp"

// CompareVersions orders resourceVersions of one cluster, the oldest first. They are decimal numbers without leading zeros (KEP-5504). Any other
// text, such as an empty one, is older than all of them.
func CompareVersions(a, b string) int {
	a, b = ordered(a), ordered(b)
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// Newer reports whether resourceVersion a is known to be later than b. Of a text that is no version, such as an empty one, nothing is known: nothing
// is newer than it, and it is newer than nothing.
func Newer(a, b string) bool { return ordered(b) != "" && CompareVersions(a, b) > 0 }

// ordered returns the text if it is a resourceVersion that can be compared, and otherwise an empty one.
func ordered(version string) string {
	if !isDigits(version) || version[0] == '0' && version != "0" {
		return ""
	}
	return version
}
