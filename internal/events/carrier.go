package events

import (
	"strings"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
)

// carrier propagates an OpenTelemetry context in a message header, under lower-case keys.
//
// propagation.HeaderCarrier would write "Traceparent", because http.Header canonicalizes keys. nats.Header is
// case-sensitive, and the server's message tracing and clients in other languages look for "traceparent".
type carrier nats.Header

var _ propagation.TextMapCarrier = carrier(nil)

// Get returns the value of the key, in any case, or "".
func (c carrier) Get(key string) string { return first(nats.Header(c), key) }

// Set sets the value of the key, in lower case.
func (c carrier) Set(key, value string) { c[strings.ToLower(key)] = []string{value} }

// Keys returns the keys as the sender wrote them.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}

// first returns the first value of the key. It tries the exact key, then any case.
func first(header nats.Header, key string) string {
	if values := header[key]; len(values) > 0 {
		return values[0]
	}
	for k, values := range header {
		if len(values) > 0 && strings.EqualFold(k, key) {
			return values[0]
		}
	}
	return ""
}
