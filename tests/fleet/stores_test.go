package fleet

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestOneClusterWatchesTheStoresForAll checks that one watcher's events about secret stores reach the streams of the other
// clusters, on the hub and beyond a leaf node, and that its other events do not.
func TestOneClusterWatchesTheStoresForAll(t *testing.T) {
	t.Parallel()
	h := renderWithStores(t, "hub", "hub", "us", "eu:leaf")
	h.start("hub", "us", "eu")
	h.declareFleet()
	watcher := h.jetstream("hub-watcher")
	publish := func(subject, id string) {
		t.Helper()
		if _, err := watcher.Publish(t.Context(), subject, nil, jetstream.WithMsgID("hub/"+id), retried); err != nil {
			t.Fatal(err)
		}
	}
	const path = "keyturn.v1.hub.openbao._.bao/_/kv/db"
	receives := func(id string) {
		t.Helper()
		for _, name := range []string{"us", "eu"} {
			js := h.jetstream(name + "-actuator")
			testkit.Await(t, name+" has the last state of the path", func(context.Context) bool {
				got := messages(t, js, events.StreamChanges, "keyturn.v1.hub.>")
				return len(got) == 1 && got[0] == message{subject: path, id: "hub/" + id}
			})
		}
	}
	publish("keyturn.v1.hub.secret.shop.db", "0")
	publish(path, "1")
	receives("1")
	h.caughtUp("hub")

	h.links["eu"].cut()
	publish(path, "2")
	publish(path, "3")
	h.links["eu"].mend()
	receives("3")

	// The others may read events about stores, but not publish them.
	refused := make(chan error, 8)
	connection := h.connect("us-watcher", func(err error) { refused <- err })
	if err := connection.PublishMsg(nats.NewMsg(path)); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, "the refusal", refused); !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want a refusal of %s", err, path)
	}
}
