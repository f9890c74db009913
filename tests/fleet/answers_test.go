package fleet

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// The users of a cluster, with a NATS of its own and on the hub, and of FLEET. The operator could have anything done, anyway.
func TestNoUserOfAHubHasAnswersPutWhereItMayNotPublish(t *testing.T) {
	t.Parallel()
	h := render(t, "eu:leaf", "us")
	h.start("eu", "us")
	h.declareFleet()
	for _, cluster := range []string{"eu", "us"} {
		owner := h.jetstream(cluster + "-operator")
		m := testkit.NewMisdirection(t, cluster, owner, h.jetstream(cluster+"-watcher"))
		for _, user := range []struct{ name, consumer, filter string }{
			{"reader", "reads", ""},
			{"audit", "audits", events.KindFilter(cluster, events.KindOpenBao)},
			{"projector", "projector-" + cluster, events.KindFilter(cluster, events.KindSecret)},
			{"watcher", "watches", ""},
		} {
			t.Run(cluster+" "+user.name, func(t *testing.T) {
				m.Try(t, user.name, h.with(t).connect(cluster+"-"+user.name, nil), user.consumer, user.filter)
			})
		}
	}
	h.caughtUp("eu", "us")
	t.Run("the reader of FLEET", func(t *testing.T) {
		h := h.with(t)
		fleet, err := h.jetstream("fleet-operator").Stream(t.Context(), "FLEET")
		if err != nil {
			t.Fatal(err)
		}
		before := fleet.CachedInfo().State.Msgs
		if before == 0 {
			t.Fatal("FLEET is empty")
		}
		connection := h.connect("fleet-reader", nil)
		for _, subject := range []string{"$JS.API.STREAM.INFO.FLEET", "$JS.API.DIRECT.GET.FLEET.none"} {
			if err := connection.PublishRequest(subject, "$JS.API.STREAM.PURGE.FLEET", nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := connection.Flush(); err != nil {
			t.Fatal(err)
		}
		info, err := fleet.Info(t.Context())
		if err != nil || info.State.Msgs < before {
			t.Errorf("FLEET has %d events, %v, want %d", info.State.Msgs, err, before)
		}
	})
}
