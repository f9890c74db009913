package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// Bus publishes and consumes the events of one cluster. It is safe for concurrent use. It does not close the connection.
type Bus struct {
	// Reader reads the cluster's own streams.
	Reader

	js      jetstream.JetStream
	cluster string
	logger  *slog.Logger
	now     func() time.Time // time.Now, except in tests

	told          *events.Notices // about full streams
	guardInterval time.Duration   // the constant of that name, except in tests
	share         *historyShare   // the shares of StreamHistory that namespaces may use
	secrets       secrets

	deadLetters jetstream.Stream

	mu   sync.Mutex
	owed map[string]*recording // by subject: the changes that StreamHistory may lack
}

// answerTimeout bounds the wait for a stream's response. If a server was lost together with the message, another server responds to the next one.
const answerTimeout = 3 * time.Second

// Open verifies the streams of a cluster and returns its bus. It waits up to 5 seconds for missing streams, and up to a minute for the servers to
// respond: clustered servers do not respond until a majority of them runs. If streams are missing or declared with wrong fields, the error lists all
// of them, one per line. If logger is nil, its output is discarded.
func Open(ctx context.Context, nc *nats.Conn, cluster string, logger *slog.Logger) (*Bus, error) {
	if err := events.ValidateCluster(cluster); err != nil {
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
		Reader: Reader{stall: stall, lostAfter: lostAfter, historyRoot: events.HistoryRoot},
		js:     js, cluster: cluster, logger: orDiscard(logger), now: time.Now, told: events.NewNotices(sayAgain), guardInterval: guardInterval,
		owed: make(map[string]*recording),
	}
	for name, stream := range b.streams() {
		if *stream, err = js.Stream(ctx, name); err != nil {
			return nil, fmt.Errorf("reading stream %s: %w", name, err)
		}
	}
	if b.secrets, err = secretsOf(nc); err != nil {
		return nil, err
	}
	b.share = newHistoryShare(b.history, b.now, b.logger)
	return b, nil
}

func (b *Bus) streams() map[string]*jetstream.Stream {
	return map[string]*jetstream.Stream{events.StreamChanges: &b.changes, events.StreamHistory: &b.history, events.StreamDeadLetters: &b.deadLetters}
}

// Cluster returns the configured name of the cluster.
func (b *Bus) Cluster() string { return b.cluster }

// OnReconnect sends a signal, unless the channel is full, each time the connection to NATS is up again, until ctx is done or the connection is
// closed.
func (b *Bus) OnReconnect(ctx context.Context, reconnected chan<- struct{}) {
	connection := b.js.Conn()
	changed := connection.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer connection.RemoveStatusListener(changed)
	for !connection.IsClosed() {
		select {
		case <-ctx.Done():
			return
		case status := <-changed:
			if status != nats.CONNECTED {
				continue
			}
			select {
			case reconnected <- struct{}{}:
			default: // A signal is already waiting.
			}
		}
	}
}
