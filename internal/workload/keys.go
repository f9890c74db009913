package workload

import (
	"fmt"
	"strings"
)

// maxKeysNamed is how many keys a sentence names at most.
const maxKeysNamed = 5

// JoinKeys lists keys for a sentence, and only counts those beyond the first few: "a, b, c, d, e, 2 more".
func JoinKeys(keys []string) string {
	if len(keys) <= maxKeysNamed {
		return strings.Join(keys, ", ")
	}
	return strings.Join(keys[:maxKeysNamed], ", ") + fmt.Sprintf(", %d more", len(keys)-maxKeysNamed)
}
