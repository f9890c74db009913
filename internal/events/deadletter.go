package events

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// DeadLetter is a message that was rejected.
type DeadLetter struct {
	// Subject is the subject of the message.
	Subject string `json:"subject"`
	// Reason and Error are those of the RejectError.
	Reason string `json:"reason"`
	Error  string `json:"error"`
	// Seq is the message's sequence on StreamChanges, where it may have been superseded since.
	Seq uint64 `json:"seq"`
	// Time is when the message was rejected.
	Time time.Time `json:"time"`
	// Header and Data are those of the message, without the headers that a NATS server acts on. Oversized data and oversized
	// headers are left out.
	Header nats.Header `json:"-"`
	Data   []byte      `json:"-"`
}

// DeadLetters returns the newest dead letters of the cluster, at most limit, in the order in which they were rejected.
func (b *Bus) DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error) {
	var letters []DeadLetter
	err := b.read(ctx, b.deadLetters, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{deadLetterRoot + b.cluster + ".>"},
		DeliverPolicy:  jetstream.DeliverAllPolicy,
	}, func(msg jetstream.Msg, _ *jetstream.MsgMetadata) error {
		letters = append(letters, parseDeadLetter(msg.Headers(), msg.Data()))
		if len(letters) > limit {
			letters = letters[1:]
		}
		return nil
	})
	return letters, err
}

// parseDeadLetter decodes what deadLetter has written. It leaves an unreadable field empty, so that one broken letter does not
// hide the others.
func parseDeadLetter(header nats.Header, data []byte) DeadLetter {
	letter := DeadLetter{Header: nats.Header{}, Data: data}
	for key, values := range header {
		if !strings.HasPrefix(key, "Keyturn-") && !isServerHeader(key) {
			letter.Header[key] = values
		}
	}
	letter.Subject, _ = percentDecode(header.Get(headerSubject))
	letter.Reason, _ = percentDecode(header.Get(headerReason))
	letter.Error, _ = percentDecode(header.Get(headerError))
	letter.Seq, _ = strconv.ParseUint(header.Get(headerSequence), 10, 64)
	letter.Time, _ = time.Parse(time.RFC3339Nano, header.Get(headerTime))
	return letter
}

// deadLetter publishes a copy of a rejected event on StreamDeadLetters. Repeated calls for the same event store one copy.
func (b *Bus) deadLetter(ctx context.Context, d *Delivery, reject *RejectError) error {
	letter := &nats.Msg{Subject: deadLetterSubject(b.cluster, d.subject), Header: nats.Header{}, Data: d.data}
	if headerSize(d.header) <= MaxHeaderSize {
		maps.Copy(letter.Header, d.header)
		// Otherwise, the server would apply an expectation or a TTL of the original to the copy.
		maps.DeleteFunc(letter.Header, func(key string, _ []string) bool { return isServerHeader(key) })
	}
	if len(d.data) > MaxEventSize {
		letter.Data = nil
	}
	letter.Header.Set(headerReason, percentEncode(reject.Reason))
	letter.Header.Set(headerError, percentEncode(Shorten(reject.Err.Error(), maxErrorText)))
	letter.Header.Set(headerSubject, percentEncode(d.subject))
	letter.Header.Set(headerSequence, strconv.FormatUint(d.Seq, 10))
	letter.Header.Set(headerTime, b.now().UTC().Format(time.RFC3339Nano))
	id := fmt.Sprintf("%s/%d/%d", b.cluster, d.Seq, d.StoredAt.UnixNano())
	_, err := b.js.PublishMsg(ctx, letter, jetstream.WithMsgID(id), jetstream.WithExpectStream(StreamDeadLetters))
	if err != nil {
		return fmt.Errorf("publishing on %s: %w", letter.Subject, err)
	}
	return nil
}

// isServerHeader reports whether a NATS server acts on the header.
func isServerHeader(key string) bool { return strings.HasPrefix(strings.ToLower(key), "nats-") }
