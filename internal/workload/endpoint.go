package workload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// AnnotationReload is the annotation, on a workload, with the endpoint at which its pods are asked to reload instead of being replaced.
const AnnotationReload = "keyturn.dev/reload"

// Endpoint is where each pod of a workload is asked to reload: a port of the pod, and a path. The zero value means none.
type Endpoint struct {
	Port uint16
	// Path begins with a slash, and is escaped as in a URL.
	Path string
}

const (
	endpointPrefix = "http://:"
	// endpointForm is what AnnotationReload may be.
	endpointForm = "http://:<port>/<path>, such as http://:9090/-/reload; the host is each pod itself"
	maxEndpoint  = 512
)

// parseEndpoint reads the value of AnnotationReload. The value names no host, so that permission to annotate a workload allows no requests except
// to its own pods. Errors do not quote the value, which may be a URL with a credential.
func parseEndpoint(text string) (Endpoint, error) {
	wrong := func(problem string) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("%s: write %s", problem, endpointForm)
	}
	rest, ok := strings.CutPrefix(text, endpointPrefix)
	switch {
	case len(text) > maxEndpoint:
		return wrong(fmt.Sprintf("is longer than %d bytes", maxEndpoint))
	case strings.HasPrefix(text, "https:"):
		return wrong("asks for TLS, for which a pod has no certificate of its address")
	case !ok:
		return wrong("is not a port and a path")
	}
	digits, path, _ := strings.Cut(rest, "/")
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != digits {
		return wrong("has no port of 1 to 65535")
	}
	if err := validatePath(path); err != nil {
		return wrong(err.Error())
	}
	return Endpoint{Port: uint16(port), Path: "/" + path}, nil
}

// String returns the form in which it is written.
func (e Endpoint) String() string { return endpointPrefix + strconv.Itoa(int(e.Port)) + e.Path }

var (
	errPath    = errors.New("has a path with other characters than letters, digits, -._~!$&'()*+,;=:@/ and %XX")
	errDotPath = errors.New("has a path with a . or .. element")
)

// validatePath returns an error unless path is a valid URL path: without query and fragment, and without anything that servers or proxies might
// interpret differently.
func validatePath(path string) error {
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~!$&'()*+,;=:@/", c) >= 0:
		case c == '%' && i+2 < len(path) && isHex(path[i+1]) && isHex(path[i+2]):
			i += 2
		default:
			return errPath
		}
	}
	for element := range strings.SplitSeq(path, "/") {
		if element == "." || element == ".." {
			return errDotPath
		}
	}
	return nil
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
