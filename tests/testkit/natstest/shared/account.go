package shared

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// Account returns the address of a new account without streams, which the test has for itself. The TestMain of the package must be [Main].
func Account(t testing.TB) (address string) {
	t.Helper()
	address, err := one.account()
	testkit.Must(t, err)
	t.Cleanup(func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testkit.Patience)
		defer cancel()
		if err := empty(ctx, address); err != nil {
			t.Logf("streams are left behind, which costs the other tests disk: %v", err)
		}
	})
	return address
}

// empty deletes the streams of an account.
func empty(ctx context.Context, address string) error {
	connection, err := nats.Connect(address, nats.Timeout(testkit.Patience))
	if err != nil {
		return err
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	var streams []*jetstream.StreamInfo
	list := js.ListStreams(ctx)
	for stream := range list.Info() {
		streams = append(streams, stream)
	}
	// The last one first: a stream whose source is deleted requests a new consumer, and its goroutine then waits half a minute for the response.
	slices.SortFunc(streams, func(a, b *jetstream.StreamInfo) int { return b.Created.Compare(a.Created) })
	errs := []error{list.Err()}
	for _, stream := range streams {
		errs = append(errs, js.DeleteStream(ctx, stream.Config.Name))
	}
	return errors.Join(errs...)
}
