package workload

import (
	"crypto/sha256"
	"encoding/hex"
)

// shortHash returns the first bytes of the SHA-256 of a text, in hexadecimal, for names that everyone derives in the same way.
func shortHash(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}
