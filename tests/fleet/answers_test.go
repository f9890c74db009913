package fleet

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// misdirect checks that no user of the clusters, and of FLEET, has answers put where it may not publish. The operator could have anything done,
// anyway.
func (h *hub) misdirect(clusters ...string) {
	for _, cluster := range clusters {
		owner := h.jetstream(cluster + "-operator")
		m := testkit.NewMisdirection(h.T, cluster, owner, h.jetstream(cluster+"-watcher"))
		for _, user := range []struct{ name, consumer, filter string }{
			{"reader", "reads", ""},
			{"audit", "audits", events.KindFilter(cluster, events.KindOpenBao)},
			{"projector", "projector-" + cluster, events.KindFilter(cluster, events.KindSecret)},
			{"watcher", "watches", ""},
		} {
			h.Run(cluster+" "+user.name, func(t *testing.T) {
				m.Try(t, user.name, h.with(t).connect(cluster+"-"+user.name, nil), user.consumer, user.filter)
			})
		}
	}
	h.caughtUp(clusters...)
	h.Run("the reader of FLEET", func(t *testing.T) {
		h := h.with(t)
		fleet, err := h.jetstream("fleet-operator").Stream(t.Context(), "FLEET")
		testkit.Must(t, err)
		before := fleet.CachedInfo().State.Msgs
		if before == 0 {
			t.Fatal("FLEET is empty")
		}
		connection := h.connect("fleet-reader", nil)
		for _, subject := range []string{"$JS.API.STREAM.INFO.FLEET", "$JS.API.DIRECT.GET.FLEET.none"} {
			testkit.Must(t, connection.PublishRequest(subject, "$JS.API.STREAM.PURGE.FLEET", nil))
		}
		testkit.Await(t, "the hub answers what was asked for after that", func(ctx context.Context) bool {
			_, err := connection.RequestWithContext(ctx, "$JS.API.STREAM.INFO.FLEET", nil)
			return err == nil
		})
		var info *jetstream.StreamInfo
		testkit.Await(t, "the hub says what FLEET has", func(ctx context.Context) bool {
			info, err = fleet.Info(ctx)
			return err == nil
		})
		if info.State.Msgs < before {
			t.Errorf("FLEET has %d events, want %d", info.State.Msgs, before)
		}
	})
}
