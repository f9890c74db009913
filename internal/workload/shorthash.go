package workload

import (
	"crypto/sha256"
	"encoding/hex"
)

// shortHash returns the first bytes of the SHA-256 of a text, in hexadecimal, for a name that is the same whoever makes it.
func shortHash(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}
