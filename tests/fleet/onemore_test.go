package fleet

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestOneMoreClusterDisturbsNobody adds clusters to a hub that is running, one that connects to it and one with a leaf node.
func TestOneMoreClusterDisturbsNobody(t *testing.T) {
	t.Parallel()
	h := render(t, "eu:leaf", "us")
	h.start("eu", "us")
	h.declareFleet()
	h.publish("eu", "secret.shop.db", "eu/1")
	h.publish("us", "secret.shop.db", "us/1")
	h.caughtUp("eu", "us")
	there := h.connect("us-actuator", nil)

	h.render("", "eu:leaf", "us", "ap", "edge:leaf")
	// The first time makes the accounts, the second one what they import.
	for round := 1; round <= 2; round++ {
		for _, server := range h.Servers {
			testkit.Must(t, server.Process().Signal(syscall.SIGHUP))
			testkit.Await(t, "the server has read its files", func(context.Context) bool {
				return strings.Count(server.Process().Output(), "Reloaded server configuration") == round
			})
		}
	}
	h.startClusters("ap", "edge")
	h.declareFleet()
	h.publish("ap", "secret.shop.db", "ap/1")
	h.publish("edge", "secret.shop.db", "edge/1")
	h.caughtUp("eu", "us", "ap", "edge")
	if err := there.FlushTimeout(testkit.Patience); err != nil || there.Stats().Reconnects > 0 {
		t.Errorf("who was there had to connect %d times again: %v", there.Stats().Reconnects, err)
	}
}
