package workload

import (
	"fmt"
	"strings"
)

// maxKeysNamed is how many keys a sentence names.
const maxKeysNamed = 5

// JoinKeys names keys in a sentence, and counts those that would make it too long: "a, b, c, d, e, 2 more".
func JoinKeys(keys []string) string {
	if len(keys) <= maxKeysNamed {
		return strings.Join(keys, ", ")
	}
	return strings.Join(keys[:maxKeysNamed], ", ") + fmt.Sprintf(", %d more", len(keys)-maxKeysNamed)
}
