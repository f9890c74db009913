package shared

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { Main(m) }

// open connects to an account.
func open(t *testing.T, address string) jetstream.JetStream {
	t.Helper()
	connection, err := nats.Connect(address, nats.Timeout(testkit.Patience))
	testkit.Must(t, err)
	t.Cleanup(connection.Close)
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience))
	testkit.Must(t, err)
	return js
}

// reserving is a stream that reserves more than any disk has.
var reserving = jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: room / 8}

func TestTheStreamsEndWithTheTest(t *testing.T) {
	var address string
	t.Run("one that has streams", func(t *testing.T) {
		address = Account(t)
		js := open(t, address)
		copying := jetstream.StreamConfig{Name: "COPY", Sources: []*jetstream.StreamSource{{Name: "S"}}}
		for _, config := range []jetstream.StreamConfig{reserving, copying} {
			if _, err := js.CreateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
		}
	})
	js := open(t, address)
	testkit.Await(t, "they are gone", func(ctx context.Context) bool {
		names := js.StreamNames(ctx)
		for range names.Name() {
			return false
		}
		return names.Err() == nil
	})
}
