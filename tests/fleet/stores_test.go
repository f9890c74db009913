package fleet

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// aPath ends the subject of the events about a path of a secret store.
const aPath = "openbao._.bao/_/kv/db"

// shareStores checks that one watcher's events about secret stores reach the streams of the other clusters, on the hub and beyond a leaf node, and
// that its other events do not.
func (h *hub) shareStores(stores, member, spoke string) {
	h.publish(stores, "secret.shop.db", stores+"/0")
	h.publish(stores, aPath, stores+"/1")
	h.haveOf(stores, stores+"/1", member, spoke)
	h.caughtUp(stores)

	h.links[spoke].cut()
	h.publish(stores, aPath, stores+"/2")
	h.publish(stores, aPath, stores+"/3")
	h.links[spoke].mend()
	h.haveOf(stores, stores+"/3", member, spoke)

	// The others may read events about stores, but not publish them.
	subject := "keyturn.v1." + stores + "." + aPath
	refused := make(chan error, 8)
	connection := h.connect(member+"-watcher", func(err error) { refused <- err })
	testkit.Must(h, connection.PublishMsg(nats.NewMsg(subject)))
	if err := testkit.Receive(h.T, "the refusal", refused); !strings.Contains(err.Error(), subject) {
		h.Errorf("got %v, want a refusal of %s", err, subject)
	}
}

// haveOf waits until each of the clusters has the event with the ID about aPath, and no other event, of the cluster that watches the stores.
func (h *hub) haveOf(stores, id string, clusters ...string) {
	h.Helper()
	prefix := "keyturn.v1." + stores + "."
	for _, name := range clusters {
		js := h.jetstream(name + "-actuator")
		testkit.Await(h.T, name+" has the last state of the path, with the ID "+id, func(context.Context) bool {
			got := messages(h.T, js, events.StreamChanges, prefix+">")
			return len(got) == 1 && got[0] == message{subject: prefix + aPath, id: id}
		})
	}
}
