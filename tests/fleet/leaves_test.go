package fleet

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestClustersWithANATSOfTheirOwn has clusters roll where most is between a cluster and the hub; the other topologies have the same
// programs on another NATS.
func TestClustersWithANATSOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := render(t, "eu:leaf", "us:leaf")
	intruder := h.letIn("us")
	h.embedded["eu"] = ""
	h.start(names...)
	clusters := startAll(t, 40, func(name string) programs.Options {
		if name == "eu" {
			return h.embeddedLeaf(name)
		}
		return h.options(name)
	})
	eu, us := clusters["eu"], clusters["us"]
	h.embedded["eu"] = eu.programs.NATSURL()
	h.declareFleet()
	accept(t, clusters)
	h.caughtUp(names...)

	var known int
	t.Run("the link to the hub is cut in the middle of publishing", func(t *testing.T) { known = h.with(t).cutLink(eu.with(t)) })
	t.Run("the NATS of a cluster is killed in the middle of publishing", func(t *testing.T) { h.with(t).killLeaf(us.with(t)) })
	t.Run("someone may do in one cluster what he likes", func(t *testing.T) { h.with(t).forge(intruder, us.with(t), eu.with(t)) })
	t.Run("the hub has the last state of what it has missed, without the states in between", func(t *testing.T) {
		h := h.with(t)
		h.caughtUp(names...)
		if got := h.fleetHas(eu, "db"); got != known+1 {
			t.Errorf("FLEET has %d events of db, want one more than the %d before: the last of three", got, known)
		}
	})
	t.Run("the hub is killed and nothing waits for it", func(t *testing.T) { h.with(t).killAll(clusters) })
	h.caughtUp(names...)
}

// embeddedLeaf returns the options of programs whose actuator embeds the leaf node, as in deploy/components/leaf.
func (h *hub) embeddedLeaf(name string) programs.Options {
	h.Helper()
	dir := h.TempDir()
	text := map[string]string{}
	for _, file := range []string{
		"../../deploy/components/leaf/leaf.conf", "../../deploy/programs/nats.conf", filepath.Join(h.Dir, name, "leaf-key.conf"),
		filepath.Join(h.Dir, "keys", name+"-watcher.pub"), filepath.Join(h.Dir, "keys", name+"-actuator.pub"),
		filepath.Join(h.Dir, "keys", name+"-reader.pub"),
	} {
		content, err := os.ReadFile(file)
		testkit.Must(h, err)
		text[filepath.Base(file)] = strings.TrimSpace(string(content))
		testkit.Must(h, os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o600))
	}
	return programs.Options{
		Env: []string{
			"NATS_WATCHER_KEY=" + text[name+"-watcher.pub"], "NATS_ACTUATOR_KEY=" + text[name+"-actuator.pub"],
			"NATS_READER_KEY=" + text[name+"-reader.pub"],
			"NATS_DOMAIN=" + strconv.Quote(name), "NATS_HUB=tls://" + h.links[name].address(), "NATS_HUB_CA=" + h.Certificates.CA,
			"NATS_TLS_CERT=" + h.Certificates.Cert, "NATS_TLS_KEY=" + h.Certificates.Key,
		},
		WatcherArgs:  []string{"--nats-creds", h.Seed(name + "-watcher"), "--nats-ca", h.Certificates.CA},
		ActuatorArgs: []string{"--nats-creds", h.Seed(name + "-actuator"), "--nats-config", filepath.Join(dir, "leaf.conf")},
	}
}

// cutLink cuts the link of a cluster's NATS to the hub while the cluster's watcher publishes. The cluster continues by itself. It returns how many
// events of the Secret db the hub has when the link is back, without three that it has missed.
func (h *hub) cutLink(c *cluster) (known int) {
	link, before := h.links[c.name], c.generations()
	c.rotateCrowd(link.cut)
	c.rolls(before, c.crowd...)

	known = h.fleetHas(c, "db")
	for range 3 {
		before := c.generations()
		c.rotate("db", "password")
		c.rolls(before, "web")
	}
	if got := h.fleetHas(c, "db"); got != known {
		c.Errorf("FLEET has %d events of db where the link is cut, want %d as before: it is not cut", got, known)
	}
	link.mend()
	return known
}

// fleetHas returns how many events of a Secret of the cluster are in FLEET.
func (h *hub) fleetHas(c *cluster, secret string) int {
	h.Helper()
	return len(messages(h.T, h.jetstream("fleet-reader"), "FLEET", c.secretSubject(secret)))
}

// killLeaf kills a cluster's NATS while the cluster's watcher publishes, and starts it again on its store.
func (h *hub) killLeaf(c *cluster) {
	before := c.generations()
	c.rotateCrowd(h.leaves[c.name].Kill)
	h.launch(h.leaves[c.name])
	c.rolls(before, c.crowd...)
}

// killAll kills the hub, has every cluster roll without it, and starts it again on its stores.
func (h *hub) killAll(clusters map[string]*cluster) {
	for _, server := range h.Servers {
		server.Kill()
	}
	together(h.T, clusters, func(c *cluster) { c.rotate("shared", "password") }, "api", "worker")
	h.launch(h.Servers...)
}
