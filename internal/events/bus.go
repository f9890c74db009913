package events

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Bus publishes and consumes the events of one cluster. It is safe for concurrent use. It does not close the connection.
type Bus struct {
	// Reader reads the cluster's own streams.
	Reader

	js      jetstream.JetStream
	cluster string
	logger  *slog.Logger
	// now is time.Now, except in tests.
	now func() time.Time
	// retry returns the delays between the attempts of a consumer. It is newConsumerBackoff, except in tests.
	retry    func() wait.Backoff
	refusals refusals
	// guardInterval is the constant of that name, except in tests.
	guardInterval time.Duration
	// share is how much of StreamHistory a namespace may take.
	share *historyShare

	deadLetters jetstream.Stream
}

// answerTimeout bounds the wait for a stream's answer to a message. A server that is lost together with the message never answers. If the
// message is sent again, it reaches the server that took over.
const answerTimeout = 3 * time.Second

// Open verifies the streams and returns the bus of a cluster. It waits up to 5 seconds for streams that do not exist yet, and up to a
// minute for an answer: servers that form a cluster do not answer until most of them run.
// If streams are missing or declared with wrong fields, the error lists all of them, one per line. A nil logger discards.
func Open(ctx context.Context, nc *nats.Conn, cluster string, logger *slog.Logger) (*Bus, error) {
	if err := ValidateCluster(cluster); err != nil {
		return nil, fmt.Errorf("cluster %w", err)
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(answerTimeout))
	if err != nil {
		return nil, fmt.Errorf("opening jetstream: %w", err)
	}
	if err := awaitDeclared(ctx, js, cluster, orDiscard(logger)); err != nil {
		return nil, err
	}
	b := &Bus{
		Reader: Reader{stall: stall, lostAfter: lostAfter, historyRoot: historyRoot},
		js:     js, cluster: cluster, logger: orDiscard(logger), now: time.Now, retry: newConsumerBackoff, guardInterval: guardInterval,
	}
	for name, stream := range b.streams() {
		if *stream, err = js.Stream(ctx, name); err != nil {
			return nil, fmt.Errorf("reading stream %s: %w", name, err)
		}
	}
	b.share = newHistoryShare(b.history.CachedInfo().Config, b.lookAtHistory, b.now, b.logger)
	return b, nil
}

// streams returns the streams of the bus, by name.
func (b *Bus) streams() map[string]*jetstream.Stream {
	return map[string]*jetstream.Stream{StreamChanges: &b.changes, StreamHistory: &b.history, StreamDeadLetters: &b.deadLetters}
}

// Cluster returns the configured name of the cluster.
func (b *Bus) Cluster() string { return b.cluster }

// OnReconnect calls fn each time the connection to NATS is up again, until ctx is done or the connection is closed. If the
// connection comes up often while fn runs, some calls are dropped.
func (b *Bus) OnReconnect(ctx context.Context, fn func()) {
	connection := b.js.Conn()
	changed := connection.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer connection.RemoveStatusListener(changed)
	for !connection.IsClosed() {
		select {
		case <-ctx.Done():
			return
		case status := <-changed:
			if status == nats.CONNECTED {
				fn()
			}
		}
	}
}

// Stored is an event as a stream stores it.
type Stored struct {
	Subject string
	// Seq is the event's sequence on the stream. PublishChange takes it to supersede the event.
	Seq   uint64
	Event event.Event
	// Time is when the stream stored the event.
	Time time.Time
	// Err is the reason why the message is not a readable event, or nil. If it is set, Event has no attributes. The other
	// fields are valid, so that a publisher can supersede the message.
	Err error
}

// Change returns the stored change. It returns a RejectError if the event is not a change, or is about the object of another subject.
func (s Stored) Change() (Change, error) {
	if s.Err != nil {
		return Change{}, s.Err
	}
	change, err := ParseChange(s.Event)
	if err != nil {
		return Change{}, err
	}
	return change, validateChange(s.Subject, change)
}

// lastChange returns the stored change in compact form, with the errors of Change.
func (s Stored) lastChange() (LastChange, error) {
	change, err := s.Change()
	if err != nil {
		return LastChange{}, err
	}
	return NewLastChange(s.Seq, s.Time, change)
}

// Outcome returns the stored outcome. It returns a RejectError if the event is not an outcome, or is about the object of another subject.
func (s Stored) Outcome() (Outcome, error) {
	if s.Err != nil {
		return Outcome{}, s.Err
	}
	outcome, err := ParseOutcome(s.Event)
	if err != nil {
		return Outcome{}, err
	}
	return outcome, validateOutcome(s.Subject, outcome)
}

// Projection returns the stored projection. It returns a RejectError if the event is not a projection, or is about the object of another
// subject.
func (s Stored) Projection() (Projection, error) {
	if s.Err != nil {
		return Projection{}, s.Err
	}
	projection, err := parseProjection(s.Event)
	if err != nil {
		return Projection{}, err
	}
	return projection, validateProjection(s.Subject, projection)
}

func newStored(subject string, seq uint64, at time.Time, header nats.Header, data []byte) Stored {
	e, err := FromMsg(subject, header, data)
	if err != nil {
		e = event.New()
	}
	return Stored{Subject: subject, Seq: seq, Event: e, Time: at, Err: err}
}
