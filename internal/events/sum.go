package events

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Sum is a fingerprint in binary form: the 128 bits that are kept of an HMAC.
type Sum [16]byte

// Text returns the form used in events and annotations: k<key id>:<hex>.
func (s Sum) Text(keyID string) string {
	var digits [2 * len(s)]byte
	hex.Encode(digits[:], s[:])
	return "k" + keyID + ":" + string(digits[:])
}

// parseSum is the inverse of Text.
func parseSum(text string) (keyID string, s Sum, err error) {
	id, digits, _ := strings.Cut(strings.TrimPrefix(text, "k"), ":")
	if len(digits) == 2*len(s) {
		_, err = hex.Decode(s[:], []byte(digits))
	}
	if err != nil || s.Text(id) != text {
		return "", Sum{}, fmt.Errorf("fingerprint %q is not k<key id>:<%d hex digits>", text, 2*len(s))
	}
	return id, s, nil
}
