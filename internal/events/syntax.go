package events

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// These check the syntax of the parts of events. The checks of DNS names are those of k8s.io/apimachinery/pkg/util/validation, repeated here so that
// the wire format does not depend on the Kubernetes API.

const (
	maxLabel = 63
	maxName  = 253
)

// faultIf returns an error if something is wrong. cmp.Or returns the first of several.
func faultIf(isWrong bool, fault string) error {
	if isWrong {
		return errors.New(fault)
	}
	return nil
}

func isSubdomain(text string) bool {
	if len(text) > maxName {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if !isDashed(label) {
			return false
		}
	}
	return true
}

func isLabel(text string) bool { return len(text) <= maxLabel && isDashed(text) }

func isDashed(text string) bool {
	if text == "" || text[0] == '-' || text[len(text)-1] == '-' {
		return false
	}
	return isOf(text, isDash)
}

// isWord reports whether the text consists of 1 to 63 lower-case letters and digits, like the kinds.
func isWord(text string) bool { return len(text) <= maxLabel && isOf(text, isAlnum) }

// isUID reports whether the text can be the UID of an object. Kubernetes generates UUIDs. A '/' would look like a separator.
func isUID(text string) bool { return len(text) <= maxLabel && isOf(text, isDash) }

// isDataKey reports whether the text can be a key of a Secret or ConfigMap.
func isDataKey(text string) bool {
	return len(text) <= maxName && isOf(text, func(c byte) bool { return isDash(c) || c >= 'A' && c <= 'Z' || c == '_' || c == '.' })
}

// isBucket reports whether the text can be the name of a bucket.
func isBucket(text string) bool { return len(text) == 2 && isOf(text, isHexDigit) }

// isVersion reports whether the text can be the resourceVersion in an event: a decimal number of 64 bits.
func isVersion(text string) bool { return len(text) <= 20 && isDigits(text) }

func isDigits(text string) bool { return isOf(text, isDigit) }

// isOf reports whether the text has at least one byte, and only legal ones.
func isOf(text string, isLegal func(byte) bool) bool {
	for _, c := range []byte(text) {
		if !isLegal(c) {
			return false
		}
	}
	return text != ""
}

// isFingerprint reports whether the text is k<key id>:<hex> with 128 bits, and not an unkeyed digest, which would reveal a short value.
func isFingerprint(text string) bool {
	id, digits, ok := strings.Cut(text, ":")
	return ok && strings.HasPrefix(id, "k") && isWord(id[1:]) && len(digits) == 32 &&
		isOf(digits, isHexDigit)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHexDigit(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' }

func isAlnum(c byte) bool { return c >= 'a' && c <= 'z' || isDigit(c) }

func isDash(c byte) bool { return isAlnum(c) || c == '-' }

// Sum is a fingerprint in binary form: the first 128 bits of an HMAC.
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

// CompareVersions orders resourceVersions, the oldest first: decimal numbers without leading zeros (KEP-5504). Any other text is older.
func CompareVersions(a, b string) int {
	a, b = ordered(a), ordered(b)
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// Newer reports whether resourceVersion a is certainly later than b. Text that is not a version is neither newer nor older.
func Newer(a, b string) bool { return ordered(b) != "" && CompareVersions(a, b) > 0 }

// ordered returns the text if it is a comparable resourceVersion, and otherwise an empty one.
func ordered(version string) string {
	if !isDigits(version) || version[0] == '0' && version != "0" {
		return ""
	}
	return version
}
