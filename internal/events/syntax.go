package events

import "strings"

// The syntax of the parts of events. The checks of DNS names are those of k8s.io/apimachinery/pkg/util/validation, repeated
// here so that the wire format depends on nothing that belongs to the Kubernetes API.

const (
	maxLabel = 63
	maxName  = 253
)

// isSubdomain reports whether the text is an RFC 1123 subdomain, as Kubernetes defines it.
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

// isLabel reports whether the text is an RFC 1123 label.
func isLabel(text string) bool { return len(text) <= maxLabel && isDashed(text) }

func isDashed(text string) bool {
	if text == "" || text[0] == '-' || text[len(text)-1] == '-' {
		return false
	}
	for _, c := range []byte(text) {
		if !isAlnum(c) && c != '-' {
			return false
		}
	}
	return true
}

// isWord reports whether the text is 1 to 63 lower-case letters and digits, as the kinds are.
func isWord(text string) bool {
	for _, c := range []byte(text) {
		if !isAlnum(c) {
			return false
		}
	}
	return text != "" && len(text) <= maxLabel
}

// isUID reports whether the text can be the UID of an object. Kubernetes generates UUIDs. A '/' would be taken for a separator.
func isUID(text string) bool {
	for _, c := range []byte(text) {
		if !isAlnum(c) && c != '-' {
			return false
		}
	}
	return text != "" && len(text) <= maxLabel
}

// isDataKey reports whether the text can be a key of a Secret or ConfigMap.
func isDataKey(text string) bool {
	for _, c := range []byte(text) {
		if !isAlnum(c) && (c < 'A' || c > 'Z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return text != "" && len(text) <= maxName
}

// isVersion reports whether the text can be the resourceVersion in an event: a decimal number of 64 bits.
func isVersion(text string) bool { return isDigits(text) && len(text) <= 20 }

func isDigits(text string) bool {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != ""
}

// isFingerprint reports whether the text is k<key id>:<hex>, with the 128 bits that are kept of an HMAC. It rejects an
// unkeyed digest, which would reveal a short value.
func isFingerprint(text string) bool {
	id, digits, ok := strings.Cut(text, ":")
	if !ok || !strings.HasPrefix(id, "k") || !isWord(id[1:]) || len(digits) != 32 {
		return false
	}
	for _, c := range []byte(digits) {
		if !isHex(c) || c >= 'A' && c <= 'F' {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func isAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
