package fleet

import (
	"context"
	"slices"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestClustersThatShareANATS(t *testing.T) {
	t.Parallel()
	h := render(t, names...)
	h.start(names...)
	// Each program of one cluster reaches the three servers through an address of its own, where its connections can be cut.
	servers := h.addresses((*testbed.NATSServer).Address)
	watcherWay, actuatorWay := newRelay(t, servers...), newRelay(t, servers...)
	clusters := startAll(t, 12, func(name string) programs.Options {
		options := h.options(name)
		if name == "us" {
			options.WatcherArgs = append(options.WatcherArgs, "--nats-url", "tls://"+watcherWay.address())
			options.ActuatorArgs = append(options.ActuatorArgs, "--nats-url", "tls://"+actuatorWay.address())
		}
		return options
	})
	h.declareFleet()
	h.caughtUp(names...)

	eu, us := clusters["eu"], clusters["us"]
	t.Run("a user of one cluster is refused the subjects of another", func(t *testing.T) { h.with(t).trespass(us.with(t)) })
	t.Run("one server of three is killed in the middle of publishing, and the streams stay writable", func(t *testing.T) {
		h.with(t).killLeader(eu.with(t))
	})
	t.Run("the connections of the programs are cut in the middle of publishing", func(t *testing.T) { cutClients(us.with(t), watcherWay, actuatorWay) })
	h.caughtUp(names...)
}

// killLeader kills the server that leads the stream of a cluster while its watcher publishes. The other two go on.
func (h *hub) killLeader(c *cluster) {
	before := c.generations()
	js := h.jetstream(c.name + "-operator")
	stream, err := js.Stream(c.Context(), events.StreamChanges)
	testkit.Must(c, err)
	leader := slices.IndexFunc(h.Servers, func(server *testbed.NATSServer) bool {
		return server.Process().Name() == stream.CachedInfo().Cluster.Leader
	})
	if leader < 0 {
		c.Fatalf("no server is %s", stream.CachedInfo().Cluster.Leader)
	}
	c.rotateCrowd(h.Servers[leader].Kill)
	c.rolls(before, c.crowd...)
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

// cutClients cuts the connections of a cluster's programs, each of which has a way of its own, again and again while its watcher publishes.
func cutClients(c *cluster, ways ...*relay) {
	before := c.generations()
	for i, name := range c.crowd {
		switch i % 4 {
		case 1:
			for _, way := range ways {
				way.cut()
			}
		case 3:
			for _, way := range ways {
				way.mend()
			}
			// Else the next cut would find nothing.
			c.eventually("both programs are connected again", func(context.Context) bool {
				return !slices.ContainsFunc(ways, func(way *relay) bool { return way.links() == 0 })
			})
		}
		c.rotate(name, "password")
	}
	c.rolls(before, c.crowd...)
}
