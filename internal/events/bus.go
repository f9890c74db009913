package events

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bus is one cluster's way to the streams. It is safe for use by several goroutines. It does not own the connection.
type Bus struct {
	// Reader reads the cluster's own streams.
	Reader

	js      jetstream.JetStream
	cluster string
	logger  *slog.Logger
	// now is the clock, for tests.
	now func() time.Time

	deadLetters jetstream.Stream
}

// answerTimeout is how long the answer to an outcome that was sent is waited for.
const answerTimeout = 5 * time.Second

// Open verifies the streams and gives the bus of a cluster. Streams that do not exist are waited for, for 5 seconds. The
// errors of streams that are not declared as they must be wrap ErrStream, all of them in one error. A nil logger means that
// nothing is logged.
func Open(ctx context.Context, nc *nats.Conn, cluster string, logger *slog.Logger) (*Bus, error) {
	if err := ValidateCluster(cluster); err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(answerTimeout))
	if err != nil {
		return nil, fmt.Errorf("opening jetstream: %w", err)
	}
	if err := verifyDeclared(ctx, js, cluster, orDiscard(logger)); err != nil {
		return nil, err
	}
	b := &Bus{Reader: Reader{stall: stall, historyRoot: historyRoot}, js: js, cluster: cluster, logger: orDiscard(logger), now: time.Now}
	for name, stream := range map[string]*jetstream.Stream{
		StreamChanges: &b.changes, StreamHistory: &b.history, StreamDeadLetters: &b.deadLetters,
	} {
		if *stream, err = js.Stream(ctx, name); err != nil {
			return nil, fmt.Errorf("reading stream %s: %w", name, err)
		}
	}
	return b, nil
}

// Cluster is the configured name of the cluster whose bus this is.
func (b *Bus) Cluster() string { return b.cluster }

// Stored is an event as a stream holds it.
type Stored struct {
	Subject string
	// Seq is the sequence in the stream: what PublishChange expects in order to supersede it.
	Seq   uint64
	Event event.Event
	// Time is when the stream stored it.
	Time time.Time
	// Err says why the message could not be read as an event. Event has no attributes then, but the others are right, so
	// that a publisher can supersede the message.
	Err error
}

// Change gives the change that is stored, or a RejectError where it is not one, or not one of this subject.
func (s Stored) Change() (Change, error) {
	if s.Err != nil {
		return Change{}, s.Err
	}
	change, err := ParseChange(s.Event)
	if err != nil {
		return Change{}, err
	}
	return change, Validate(s.Subject, change)
}

// Outcome gives the outcome that is stored, or a RejectError where it is not one, or not one of this subject.
func (s Stored) Outcome() (Outcome, error) {
	if s.Err != nil {
		return Outcome{}, s.Err
	}
	outcome, err := ParseOutcome(s.Event)
	if err != nil {
		return Outcome{}, err
	}
	return outcome, ValidateOutcome(s.Subject, outcome)
}

func newStored(subject string, seq uint64, at time.Time, header nats.Header, data []byte) Stored {
	e, err := FromMsg(subject, header, data)
	if err != nil {
		e = event.New()
	}
	return Stored{Subject: subject, Seq: seq, Event: e, Time: at, Err: err}
}
