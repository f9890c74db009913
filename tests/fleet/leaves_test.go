package fleet

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestClustersWithANATSOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := render(t, "eu:leaf", "us:leaf", "ap:leaf")
	intruder := h.letIn("ap")
	h.embedded["eu"] = ""
	h.start(names...)
	clusters := startAll(t, func(name string) programs.Options {
		if name == "eu" {
			return h.embeddedLeaf(name)
		}
		return h.options(name)
	})
	h.embedded["eu"] = clusters["eu"].programs.NATSURL()
	h.declareFleet()
	accept(t, clusters)
	h.caughtUp(names...)

	us := clusters["us"]
	foreign := lastOf(t, h.jetstream("us-watcher"), us.secretSubject("shared"))
	t.Run("parts of it fail in the middle of publishing", func(t *testing.T) {
		t.Run("the link to the hub is cut", func(t *testing.T) {
			t.Parallel()
			h.with(t).cutLink(clusters["eu"].with(t))
		})
		t.Run("the NATS of a cluster is killed", func(t *testing.T) {
			t.Parallel()
			h.with(t).killLeaf(us.with(t))
		})
		t.Run("someone may do in one cluster what he likes", func(t *testing.T) {
			t.Parallel()
			h.with(t).forge(intruder, clusters["ap"].with(t), us, foreign)
		})
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
		if err != nil {
			h.Fatal(err)
		}
		text[filepath.Base(file)] = strings.TrimSpace(string(content))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o600); err != nil {
			h.Fatal(err)
		}
	}
	return programs.Options{
		Env: []string{
			"NATS_WATCHER_KEY=" + text[name+"-watcher.pub"], "NATS_ACTUATOR_KEY=" + text[name+"-actuator.pub"],
			"NATS_READER_KEY=" + text[name+"-reader.pub"], "NATS_ACTUATOR_CONSUMERS=" + testkit.ActuatorConsumers(h.T, "../../deploy", name),
			"NATS_DOMAIN=" + strconv.Quote(name), "NATS_HUB=tls://" + h.links[name].address(), "NATS_HUB_CA=" + h.Certificates.CA,
			"NATS_TLS_CERT=" + h.Certificates.Cert, "NATS_TLS_KEY=" + h.Certificates.Key,
		},
		WatcherArgs:  []string{"--nats-creds", h.Seed(name + "-watcher"), "--nats-ca", h.Certificates.CA},
		ActuatorArgs: []string{"--nats-creds", h.Seed(name + "-actuator"), "--nats-config", filepath.Join(dir, "leaf.conf")},
	}
}

// cutLink cuts the link of a cluster's NATS to the hub while the cluster's watcher publishes. The cluster continues by itself.
// When the link is back, the hub receives the current state, without the states in between.
func (h *hub) cutLink(c *cluster) {
	link, before := h.links[c.name], c.generations()
	for i, name := range crowds() {
		if i == size/2 {
			link.cut()
		}
		c.rotate(name, "password")
	}
	c.rolls(before, crowds()...)

	reader := h.jetstream("fleet-reader")
	db := events.Subject(c.name, events.Source{Kind: events.KindSecret, Namespace: c.namespace, Name: "db"})
	known := messages(c.T, reader, "FLEET", db)
	for range 3 {
		before := c.generations()
		c.rotate("db", "password")
		c.rolls(before, "web")
	}
	if got := messages(c.T, reader, "FLEET", db); len(got) != len(known) {
		c.Errorf("FLEET has %d events of db where the link is cut, want %d as before: it is not cut", len(got), len(known))
	}
	link.mend()
	h.caughtUp(c.name)
	if got := messages(c.T, reader, "FLEET", db); len(got) != len(known)+1 {
		c.Errorf("FLEET has %d events of db, want one more than the %d before: the last of three", len(got), len(known))
	}
}

// killLeaf kills a cluster's NATS while the cluster's watcher publishes, and starts it again on its store.
func (h *hub) killLeaf(c *cluster) {
	before := c.generations()
	for i, name := range crowds() {
		if i == size/2 {
			h.leaves[c.name].Kill()
		}
		c.rotate(name, "password")
	}
	h.launch(h.leaves[c.name])
	c.rolls(before, crowds()...)
	h.caughtUp(c.name)
}

// killAll kills the hub, has every cluster roll without it, and starts it again on its stores.
func (h *hub) killAll(clusters map[string]*cluster) {
	for _, server := range h.Servers {
		server.Kill()
	}
	h.Run("clusters", func(t *testing.T) {
		for _, c := range clusters {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c := c.with(t)
				before := c.generations()
				c.rotate("shared", "password")
				c.rolls(before, "api", "worker")
			})
		}
	})
	h.launch(h.Servers...)
}
