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

// maxErrorText is the maximum size of the error text in a dead letter, in bytes.
const maxErrorText = 512

// DeadLetter says why a message was rejected.
type DeadLetter struct {
	Subject string    `json:"subject"` // the subject of the message
	Reason  string    `json:"reason"`  // of the RejectError, as Error
	Error   string    `json:"error"`
	Seq     uint64    `json:"seq"`  // the message's sequence on StreamChanges, where it may have been superseded since
	Time    time.Time `json:"time"` // when the message was rejected
}

// Headers returns the header of the message on StreamDeadLetters: the letter, and the header of the rejected message, unless that is oversized.
func (l DeadLetter) Headers(rejected map[string][]string) map[string][]string {
	headers := make(map[string][]string)
	if headerSize(rejected) <= MaxHeaderSize {
		for key, values := range rejected {
			// Otherwise, the server would apply the original's expectation or TTL to the copy.
			if !strings.HasPrefix(strings.ToLower(key), "nats-") {
				headers[key] = values
			}
		}
	}
	for key, text := range map[string]string{
		headerReason: l.Reason, headerError: Shorten(l.Error, maxErrorText), headerSubject: l.Subject,
		headerSequence: strconv.FormatUint(l.Seq, 10), headerTime: l.Time.UTC().Format(time.RFC3339Nano),
	} {
		headers[key] = []string{percentEncode(text)}
	}
	return headers
}

// ParseDeadLetter reads the letter from what Headers returned. It leaves an unreadable field empty: one broken letter must not hide the others.
func ParseDeadLetter(header map[string][]string) (letter DeadLetter) {
	letter.Subject, _ = percentDecode(first(header, headerSubject))
	letter.Reason, _ = percentDecode(first(header, headerReason))
	letter.Error, _ = percentDecode(first(header, headerError))
	letter.Seq, _ = strconv.ParseUint(first(header, headerSequence), 10, 64)
	letter.Time, _ = time.Parse(time.RFC3339Nano, first(header, headerTime))
	return letter
}
