package events

import (
	"net/url"
	"strings"
)

// StoreAddress returns the normal form of a secret store's address: scheme and host in lower case, without the default port of
// the scheme and without a slash at the end. Addresses of stores must be compared in this form, whether they come from a
// configuration, a SecretStore or an event. Text that is not a URL is returned in lower case.
func StoreAddress(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), "/")
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return strings.ToLower(text)
	}
	scheme, host := strings.ToLower(parsed.Scheme), strings.ToLower(parsed.Host)
	switch {
	case parsed.Hostname() == "":
	case scheme == "https":
		host = strings.TrimSuffix(host, ":443")
	case scheme == "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return scheme + "://" + host + strings.TrimRight(parsed.EscapedPath(), "/")
}
