package events

import (
	"strconv"
	"strings"
	"time"
)

// The headers that a dead letter has in addition to those of the message.
const (
	headerReason   = "Keyturn-Reason"
	headerError    = "Keyturn-Error"
	headerSubject  = "Keyturn-Subject"
	headerSequence = "Keyturn-Stream-Sequence"
	headerTime     = "Keyturn-Time"
)

// MaxErrorText is the maximum size of the error text in a dead letter, in bytes.
const MaxErrorText = 512

// DeadLetter is a message that was rejected.
type DeadLetter struct {
	Subject string    `json:"subject"` // the subject of the message
	Reason  string    `json:"reason"`  // of the RejectError, as Error
	Error   string    `json:"error"`
	Seq     uint64    `json:"seq"`  // the message's sequence on StreamChanges, where it may have been superseded since
	Time    time.Time `json:"time"` // when the message was rejected
	// Header and Data belong to the message, without the headers that a NATS server acts on. Oversized data and headers are omitted.
	Header map[string][]string `json:"-"`
	Data   []byte              `json:"-"`
}

// Headers returns the header of the message on StreamDeadLetters. ParseDeadLetter is its inverse.
func (l DeadLetter) Headers() map[string][]string {
	headers := make(map[string][]string)
	if headerSize(l.Header) <= MaxHeaderSize {
		for key, values := range l.Header {
			// Otherwise, the server would apply the original's expectation or TTL to the copy.
			if !isServerHeader(key) {
				headers[key] = values
			}
		}
	}
	for key, text := range map[string]string{
		headerReason: l.Reason, headerError: Shorten(l.Error, MaxErrorText), headerSubject: l.Subject,
		headerSequence: strconv.FormatUint(l.Seq, 10), headerTime: l.Time.UTC().Format(time.RFC3339Nano),
	} {
		headers[key] = []string{percentEncode(text)}
	}
	return headers
}

// ParseDeadLetter is the inverse of Headers. It leaves an unreadable field empty, so that one broken letter does not hide the others.
func ParseDeadLetter(header map[string][]string, data []byte) DeadLetter {
	letter := DeadLetter{Header: make(map[string][]string), Data: data}
	for key, values := range header {
		if !strings.HasPrefix(key, "Keyturn-") && !isServerHeader(key) {
			letter.Header[key] = values
		}
	}
	letter.Subject, _ = percentDecode(first(header, headerSubject))
	letter.Reason, _ = percentDecode(first(header, headerReason))
	letter.Error, _ = percentDecode(first(header, headerError))
	letter.Seq, _ = strconv.ParseUint(first(header, headerSequence), 10, 64)
	letter.Time, _ = time.Parse(time.RFC3339Nano, first(header, headerTime))
	return letter
}

// isServerHeader reports whether a NATS server acts on the header.
func isServerHeader(key string) bool { return strings.HasPrefix(strings.ToLower(key), "nats-") }
