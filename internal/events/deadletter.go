package events

import (
	"context"
	"errors"
	"fmt"
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
	Subject string    `json:"subject"` // the subject of the message
	Reason  string    `json:"reason"`  // of the RejectError, as Error
	Error   string    `json:"error"`
	Seq     uint64    `json:"seq"`  // the message's sequence on StreamChanges, where it may have been superseded since
	Time    time.Time `json:"time"` // when the message was rejected
	// Header and Data are those of the message, without the headers that a NATS server acts on. Oversized data and oversized headers are left out.
	Header map[string][]string `json:"-"`
	Data   []byte              `json:"-"`
}

func (l DeadLetter) headers() map[string][]string {
	headers := make(map[string][]string)
	if headerSize(l.Header) <= MaxHeaderSize {
		for key, values := range l.Header {
			// Otherwise, the server would apply an expectation or a TTL of the original to the copy.
			if !isServerHeader(key) {
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

// parseDeadLetter is the inverse of headers. It leaves an unreadable field empty, so that one broken letter does not hide the others.
func parseDeadLetter(header map[string][]string, data []byte) DeadLetter {
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

// deadLetter publishes a copy of a rejected event on StreamDeadLetters. Repeated calls for the same event store one copy.
func (b *Bus) deadLetter(ctx context.Context, d *Delivery, reject *RejectError) error {
	letter := DeadLetter{Subject: d.subject, Reason: reject.Reason, Error: reject.Err.Error(), Seq: d.Seq, Time: b.now(), Header: d.header}
	msg := &nats.Msg{Subject: deadLetterSubject(b.cluster, d.subject), Header: letter.headers()}
	if len(d.data) <= MaxEventSize {
		msg.Data = d.data
	}
	id := fmt.Sprintf("%s/%d/%d", b.cluster, d.Seq, d.StoredAt.UnixNano())
	_, err := b.js.PublishMsg(ctx, msg, jetstream.WithMsgID(id), jetstream.WithExpectStream(StreamDeadLetters))
	if err != nil {
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}

// RejectLast dead-letters the last event at an address, unless it can be read or has been, and returns the reason, or "" if it did not.
func (b *Bus) RejectLast(ctx context.Context, at Address) (reason string, err error) {
	raw, err := b.last(ctx, at.Subject())
	switch {
	case errors.Is(err, ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	_, err = newStored(raw.Subject, raw.Sequence, raw.Time, raw.Header, raw.Data).lastChange()
	if err == nil {
		return "", nil // A later event has taken its place.
	}
	reject, rejected := errors.AsType[*RejectError](err)
	if !rejected {
		reject = &RejectError{Reason: ReasonMalformed, Err: err}
	}
	hasLetter, err := b.hasDeadLetter(ctx, raw)
	if err != nil || hasLetter {
		return "", err
	}
	d := &Delivery{subject: raw.Subject, header: raw.Header, data: raw.Data, Seq: raw.Sequence, StoredAt: raw.Time}
	return reject.Reason, b.deadLetter(ctx, d, reject)
}

// hasDeadLetter reports whether the last dead letter of a subject is about this message, and not about an earlier one of its sequence.
func (b *Bus) hasDeadLetter(ctx context.Context, raw *jetstream.RawStreamMsg) (found bool, err error) {
	err = b.read(ctx, b.deadLetters, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{deadLetterSubject(b.cluster, raw.Subject)}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	}, func(msg jetstream.Msg, _ *jetstream.MsgMetadata) error {
		letter := parseDeadLetter(msg.Headers(), nil)
		found = letter.Seq == raw.Sequence && !letter.Time.Before(raw.Time)
		return nil
	})
	return found, err
}
