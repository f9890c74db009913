package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestAClusterFillsItsOwnShareOfTheHub publishes on the hub until it is refused.
func TestAClusterFillsItsOwnShareOfTheHub(t *testing.T) {
	t.Parallel()
	h := render(t, "eu", "us")
	substitute(t, filepath.Join(h.Dir, "hub", "eu.conf"), "max_file: 8192MB", "max_file: 48MB")
	h.start()
	h.declare("eu", "eu-changes")
	h.declare("us", "us-changes")
	js := h.jetstream("eu-watcher")
	// Three replicas of 32 of these are 48 MiB. What the other servers store counts some time later.
	large := make([]byte, 512<<10)
	var err error
	number := 0
	testkit.Await(t, "the limit of the account refuses an event", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, answered)
		defer cancel()
		number++
		_, err = js.Publish(ctx, fmt.Sprint("keyturn.v1.eu.secret.shop.db-", number), large)
		var limit *jetstream.APIError
		return errors.As(err, &limit) && strings.Contains(limit.Description, "resource limits exceeded")
	}, func() string { return fmt.Sprintf("%d events, the last with the error %v", number, err) })
	h.publish("us", "secret.shop.db", "us/1")
}
