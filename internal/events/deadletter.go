package events

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The header of a dead letter has these beside what the message had.
const (
	headerReason   = "Keyturn-Reason"
	headerError    = "Keyturn-Error"
	headerSubject  = "Keyturn-Subject"
	headerSequence = "Keyturn-Stream-Sequence"
	headerTime     = "Keyturn-Time"
)

// maxErrorText is how many bytes of an error's text go with a dead letter.
const maxErrorText = 512

// DeadLetter is a message that was refused.
type DeadLetter struct {
	// Subject is the one on which it was published.
	Subject string
	// Reason and Error say why it was refused.
	Reason, Error string
	// Seq is its sequence on StreamChanges, where it may be superseded by now.
	Seq uint64
	// Time is when it was refused.
	Time time.Time
	// Header and Data are those of the message, without what the server reads in a header. An oversized message is kept
	// without its data, and without its header where that is what is oversized.
	Header nats.Header
	Data   []byte
}

// DeadLetters lists the messages of this cluster that were refused last, at most limit of them, the newest last.
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

// parseDeadLetter reads what bury wrote. What cannot be read is left empty: a list of what is broken must not break.
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

// bury stores a message on StreamDeadLetters. It may be called again for the same message: it is stored once.
func (b *Bus) bury(ctx context.Context, d *Delivery, reject *RejectError) error {
	letter := &nats.Msg{Subject: deadLetterSubject(b.cluster, d.Subject), Header: nats.Header{}, Data: d.data}
	if headerSize(d.Header) <= MaxHeaderSize {
		maps.Copy(letter.Header, d.Header)
		// An expectation or a TTL would be obeyed again.
		maps.DeleteFunc(letter.Header, func(key string, _ []string) bool { return isServerHeader(key) })
	}
	if len(d.data) > MaxEventSize {
		letter.Data = nil
	}
	letter.Header.Set(headerReason, percentEncode(reject.Reason))
	letter.Header.Set(headerError, percentEncode(shorten(reject.Err.Error())))
	letter.Header.Set(headerSubject, percentEncode(d.Subject))
	letter.Header.Set(headerSequence, strconv.FormatUint(d.Seq, 10))
	letter.Header.Set(headerTime, b.now().UTC().Format(time.RFC3339Nano))
	id := fmt.Sprintf("%s/%d/%d", b.cluster, d.Seq, d.storedAt.UnixNano())
	_, err := b.js.PublishMsg(ctx, letter, jetstream.WithMsgID(id), jetstream.WithExpectStream(StreamDeadLetters))
	if err != nil {
		return fmt.Errorf("publishing on %s: %w", letter.Subject, err)
	}
	return nil
}

// isServerHeader tells the keys that a NATS server acts on.
func isServerHeader(key string) bool { return strings.HasPrefix(strings.ToLower(key), "nats-") }

// shorten makes one line of an error's text that a header can hold.
func shorten(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	return strings.ToValidUTF8(text, "")
}
