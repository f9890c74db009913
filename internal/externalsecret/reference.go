package externalsecret

import (
	"regexp"

	"k8s.io/apimachinery/pkg/types"
)

// reference is an entry of data or dataFrom.
type reference struct {
	store types.NamespacedName
	key   string
	// version is the pinned version. Empty means the latest.
	version string
	// metadata says that the secret's metadata is read instead of its data.
	metadata bool
	// find is nil if the reference names a key.
	find *find
}

// find selects secrets by name or by tags.
type find struct {
	path *string
	// name is nil if secrets are selected by tags, or by an expression that is too large to be kept. Then any secret may match.
	name *regexp.Regexp
}
