package fleet

import (
	"context"
	"slices"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

func TestClustersThatShareANATS(t *testing.T) {
	t.Parallel()
	h := render(t, names...)
	h.start(names...)
	// The programs of one cluster reach the three servers through one address, where their connections can be cut.
	way := newRelay(t, h.addresses((*testbed.NATSServer).Address)...)
	clusters := startAll(t, func(name string) programs.Options {
		options := h.options(name)
		if name == "us" {
			options.NATSURL = "tls://" + way.address()
		}
		return options
	})
	h.declareFleet()
	accept(t, clusters)
	h.caughtUp(names...)

	t.Run("a user of one cluster is refused the subjects of another", func(t *testing.T) { h.with(t).trespass(clusters["us"]) })
	t.Run("parts of it fail in the middle of publishing", func(t *testing.T) {
		t.Run("one server of three is killed, and the streams stay writable", func(t *testing.T) {
			t.Parallel()
			h.with(t).killLeader(clusters["eu"].with(t))
		})
		t.Run("the connections of the programs are cut", func(t *testing.T) {
			t.Parallel()
			cutClients(clusters["us"].with(t), way)
		})
	})
	h.caughtUp(names...)
}

// killLeader kills the server that leads the stream of a cluster while its watcher publishes. The other two go on.
func (h *hub) killLeader(c *cluster) {
	before := c.generations()
	js := h.jetstream(c.name + "-operator")
	stream, err := js.Stream(c.Context(), events.StreamChanges)
	if err != nil {
		c.Fatal(err)
	}
	leader := slices.IndexFunc(h.Servers, func(server *testbed.NATSServer) bool {
		return server.Process().Name() == stream.CachedInfo().Cluster.Leader
	})
	if leader < 0 {
		c.Fatalf("no server is %s", stream.CachedInfo().Cluster.Leader)
	}
	for i, name := range crowds() {
		if i == size/2 {
			h.Servers[leader].Kill()
		}
		c.rotate(name, "password")
	}
	c.rolls(before, crowds()...)
	h.caughtUp(c.name)

	h.launch(h.Servers[leader])
	c.eventually("the server that is back has what it missed", func(ctx context.Context) bool {
		info, err := stream.Info(ctx)
		if err != nil || len(info.Cluster.Replicas) != 2 {
			return false
		}
		for _, replica := range info.Cluster.Replicas {
			if !replica.Current || replica.Offline || replica.Lag > 0 {
				return false
			}
		}
		return true
	})
}

// cutClients cuts the connections of a cluster's programs again and again while its watcher publishes.
func cutClients(c *cluster, way *relay) {
	before := c.generations()
	for i, name := range crowds() {
		switch i % 10 {
		case 2:
			way.cut()
		case 6:
			way.mend()
		}
		c.rotate(name, "password")
	}
	c.rolls(before, crowds()...)
}
