package events

import (
	"maps"
	"slices"
	"strings"
)

// These limit a message. Together, they are less than the 1 MiB that NATS servers accept by default.
const (
	MaxEventSize  = 512 << 10 // the maximum size of an event's data, in bytes
	MaxHeaderSize = 16 << 10  // the maximum size of the keys and values of a message header together, in bytes
)

const (
	// AttributePrefix is the prefix of an attribute's key in a message header.
	AttributePrefix = "ce-"
	contentType     = "content-type"
	jsonContentType = "application/json"
)

// Message returns the header and the data of the event's message in the binary mode of the NATS binding: each attribute is a key ce-<name>, in lower
// case, with a percent-encoded value. It returns a RejectError for an event that exceeds the limits, or with text that no attribute can contain.
// Everything else was checked before.
func (s Stored) Message() (header map[string][]string, data []byte, err error) {
	if s.Err != nil {
		return nil, nil, s.Err
	}
	list := s.envelope.attributes
	header, values := make(map[string][]string, len(list)), make([]string, len(list))
	for i, f := range list {
		switch {
		case !isText(f.text):
			err = errText
		case isBlank(f.name, f.text):
			err = errBlank
		}
		if err != nil {
			return nil, nil, Rejectf(ReasonMalformed, "attribute %s: %w", f.name, err)
		}
		values[i] = percentEncode(f.text)
		header[AttributePrefix+f.name] = values[i : i+1 : i+1]
	}
	return header, s.data, checkSize(header, s.data)
}

// field is an attribute as text.
type field struct{ name, text string }

// fields are attributes in any order. A message has so few that a search is faster than a map.
type fields []field

// text returns an attribute, or "" if it is missing.
func (f fields) text(name string) string {
	for i := range f {
		if f[i].name == name {
			return f[i].text
		}
	}
	return ""
}

// readHeader returns the attributes of a message. The RejectError quotes only the subject and the names of attributes.
func readHeader(subject string, header map[string][]string, data []byte) (envelope, error) {
	if err := checkSize(header, data); err != nil {
		return envelope{}, err
	}
	if strings.HasPrefix(strings.ToLower(first(header, contentType)), "application/cloudevents") {
		return envelope{}, Rejectf(ReasonStructured, "the message on %s is in structured mode, want binary mode", subject)
	}
	list := make(fields, 0, len(header))
	for key, values := range header {
		name, ok := strings.CutPrefix(strings.ToLower(key), AttributePrefix)
		if !ok {
			continue
		}
		if !isWord(name) {
			return envelope{}, Rejectf(ReasonMalformed, "the message on %s has an attribute with an illegal name", subject)
		}
		if len(values) != 1 || slices.ContainsFunc(list, func(f field) bool { return f.name == name }) {
			return envelope{}, Rejectf(ReasonMalformed, "the message on %s does not have exactly one value of %s", subject, name)
		}
		value, err := percentDecode(values[0])
		if err != nil {
			return envelope{}, Rejectf(ReasonMalformed, "attribute %s on %s: %w", name, subject, err)
		}
		list = append(list, field{name, value})
	}
	return newEnvelope(list)
}

func checkSize(header map[string][]string, data []byte) error {
	if len(data) > MaxEventSize {
		return Rejectf(ReasonOversized, "the data has %d bytes, more than %d", len(data), MaxEventSize)
	}
	if size := headerSize(header); size > MaxHeaderSize {
		return Rejectf(ReasonOversized, "the header has %d bytes, more than %d", size, MaxHeaderSize)
	}
	return nil
}

func headerSize(header map[string][]string) int {
	var size int
	for key, values := range header {
		for _, value := range values {
			size += len(key) + len(value) + len(": \r\n")
		}
	}
	return size
}

// first returns the first value of the key. It tries the exact key, then other cases.
func first(header map[string][]string, key string) string {
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

// Carrier propagates an OpenTelemetry context in a message header, under lower-case keys.
//
// propagation.HeaderCarrier would write "Traceparent", because http.Header canonicalizes keys. Headers of NATS are case-sensitive, and the server's
// message tracing and clients in other languages look for "traceparent".
type Carrier map[string][]string

// Get returns the value of the key, in any case, or "".
func (c Carrier) Get(key string) string { return first(c, key) }

// Set sets the value of the key, in lower case.
func (c Carrier) Set(key, value string) { c[strings.ToLower(key)] = []string{value} }

// Keys returns the keys as the sender wrote them.
func (c Carrier) Keys() []string { return slices.Collect(maps.Keys(c)) }
