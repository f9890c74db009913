package embedded

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// TestWhatIsPublishedAgainAfterTheStreamWasRolledBackIsDelivered takes the last events of a stream away, but leaves its consumer as it is, as a loss
// of power may do.
func TestWhatIsPublishedAgainAfterTheStreamWasRolledBackIsDelivered(t *testing.T) {
	store, older := testkit.StoreDir(t), t.TempDir()
	messages := filepath.Join(store, "jetstream", "$G", "streams", events.StreamChanges, "msgs")
	exchange(t, store, 0, 10)
	must(t, os.CopyFS(older, os.DirFS(messages)))
	exchange(t, store, 10, 20)
	must(t, os.RemoveAll(messages))
	must(t, os.CopyFS(messages, os.DirFS(older)))
	if last := exchange(t, store, 15, 20); last != 15 {
		t.Errorf("the stream ends at %d, want 15: it was not rolled back", last)
	}
}

// exchange starts a server, publishes changes, and receives and acks each of them. It returns the last sequence of the stream.
func exchange(t *testing.T, store string, from, to int) uint64 {
	t.Helper()
	s, err := Start(Options{StoreDir: store}, nil)
	must(t, err)
	defer s.Shutdown()
	connection, err := nats.Connect("", s.ClientOption(), nats.Timeout(testkit.Patience))
	must(t, err)
	defer connection.Close()
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience/2))
	must(t, err)
	must(t, events.Declare(t.Context(), js, 1))
	bus, err := events.Open(t.Context(), connection, "blue", nil)
	must(t, err)
	missing := make(map[string]bool)
	for i := from; i < to; i++ {
		change := numbered(i)
		missing[change.ID()] = true
		natstest.Publish(t, func() error {
			_, err := bus.PublishChange(t.Context(), change, 0)
			return err
		})
	}
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
	defer stop()
	if err := bus.Consume(ctx, events.ConsumeOptions{Durable: "actuator-blue"}, func(ctx context.Context, d *events.Delivery) {
		d.Done(ctx, nil)
		delete(missing, d.Change.ID())
		if len(missing) == 0 {
			stop()
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Fatalf("not delivered within %s: %d of %d changes", testkit.Patience, len(missing), to-from)
	}
	must(t, connection.FlushTimeout(testkit.Patience))
	stream, err := js.Stream(t.Context(), events.StreamChanges)
	must(t, err)
	return stream.CachedInfo().State.LastSeq
}
