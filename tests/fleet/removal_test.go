package fleet

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// TestClustersLeaveAHubHealthy removes one cluster from a hub, and moves another one to a leaf node, as docs/how-to/many-clusters.md says. Streams that
// stay without their account, or in one without JetStream, make each server of the hub unhealthy for good.
func TestClustersLeaveAHubHealthy(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	for name, after := range map[string][]string{
		"one is removed":           {"eu"},
		"one moves to a leaf node": {"eu", "ap:leaf"},
	} {
		t.Run(name, func(t *testing.T) {
			h := render(t, "eu", "ap")
			h.start("eu", "ap")
			h.declareFleet()

			operator := h.jetstream("ap-operator")
			h.render("", after...)
			h.declare("fleet", "fleet")
			if len(after) == 1 {
				testkit.Must(t, h.jetstream("fleet-operator").DeleteStream(t.Context(), "FLEET-ap"))
			}
			for _, stream := range []string{events.StreamChanges, events.StreamHistory, events.StreamDeadLetters} {
				testkit.Must(t, operator.DeleteStream(t.Context(), stream))
			}
			for _, server := range h.Servers {
				testkit.Must(t, server.Process().Signal(syscall.SIGHUP))
				testkit.Await(t, "the server has read its files", func(context.Context) bool {
					return strings.Contains(server.Process().Output(), "Reloaded server configuration")
				})
			}
			ctx, stop := running.WithTimeout(t.Context(), testkit.Patience)
			defer stop()
			for _, server := range h.Servers {
				if err := server.Ready(ctx); err != nil {
					t.Errorf("%s: %v", server.Process().Name(), err)
				}
			}
		})
	}
}
