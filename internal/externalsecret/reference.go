package externalsecret

import (
	"regexp"

	"k8s.io/apimachinery/pkg/types"
)

// reference is an entry of data or dataFrom.
type reference struct {
	store types.NamespacedName
	key   string
	// version is the pinned version. Empty reads the latest.
	version string
	// metadata reports that the secret's metadata is read instead of its data.
	metadata bool
	// find is nil where a key is named.
	find *find
}

// find selects secrets by name or by tags.
type find struct {
	path *string
	// name is nil where secrets are selected by tags, or by an expression that is too large to be kept. Then any secret may match.
	name *regexp.Regexp
}
