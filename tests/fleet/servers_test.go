package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// deployed is the folder with the files that operators apply.
const deployed = "../../deploy/nats"

// hub is a NATS of three servers, configured by render.sh.
type hub struct {
	*testing.T
	*testbed.NATSHub
	// leaves are the servers of the clusters that have their own, by cluster.
	leaves map[string]*testbed.NATSServer
	// embedded are where the clusters whose actuator embeds the leaf node are reached.
	embedded map[string]string
	// links are the ways of the leaves to the hub.
	links map[string]*relay
}

// with is the hub for a part of the test.
func (h *hub) with(t *testing.T) *hub {
	own := *h
	own.T = t
	return &own
}

// render writes the configuration for the clusters, each as render.sh takes it, and makes their keys.
func render(t *testing.T, clusters ...string) *hub {
	t.Helper()
	return renderWithStores(t, "", clusters...)
}

// renderWithStores is render with one cluster whose watcher watches the secret stores for all.
func renderWithStores(t *testing.T, stores string, clusters ...string) *hub {
	t.Helper()
	written, err := testbed.NewNATSHub(deployed, t.TempDir())
	testkit.Must(t, err)
	h := &hub{
		T: t, NATSHub: written, leaves: map[string]*testbed.NATSServer{}, embedded: map[string]string{}, links: map[string]*relay{},
	}
	h.render(stores, clusters...)
	return h
}

func (h *hub) render(stores string, clusters ...string) {
	h.Helper()
	testkit.Must(h, h.Render(h.Context(), stores, clusters...))
}

// start starts the three servers and the leaf nodes of the clusters, and declares the streams except FLEET.
func (h *hub) start(clusters ...string) {
	h.Helper()
	testkit.Must(h, h.Prepare(h.Context(), h.TempDir()))
	for _, server := range h.Servers {
		h.own(server)
	}
	h.launch(h.Servers...)
	h.startClusters(clusters...)
}

// startClusters is the second half of start.
func (h *hub) startClusters(clusters ...string) {
	h.Helper()
	for _, name := range clusters {
		if _, err := os.Stat(filepath.Join(h.Dir, name, "leaf-key.conf")); err == nil {
			h.links[name] = newRelay(h.T, h.addresses((*testbed.NATSServer).LeafAddress)...)
			if _, ok := h.embedded[name]; ok {
				continue // its actuator does the rest
			}
			h.leaves[name] = h.server("leaf-"+name, name)
			h.leaves[name].SetEnv("NATS_HUB=tls://" + h.links[name].address())
			h.launch(h.leaves[name])
		}
		h.declare(name, name+"-changes", name+"-history", name+"-deadletters")
	}
}

func (h *hub) server(name, config string) *testbed.NATSServer {
	h.Helper()
	server, err := h.Server(h.Context(), name, config, h.TempDir())
	testkit.Must(h, err)
	h.own(server)
	return server
}

// own stops a server when the test ends.
func (h *hub) own(server *testbed.NATSServer) {
	h.Cleanup(func() {
		server.Stop()
		if h.Failed() && server.Process() != nil {
			h.Logf("log of %s:\n%s", server.Process().Name(), server.Process().Output())
		}
	})
}

// launch starts servers and waits for all of them.
func (h *hub) launch(servers ...*testbed.NATSServer) {
	h.Helper()
	testkit.Must(h, testbed.LaunchNATS(h.Context(), servers...))
}

// addresses returns the addresses of the three servers.
func (h *hub) addresses(of func(*testbed.NATSServer) string) []string {
	var addresses []string
	for _, server := range h.Servers {
		addresses = append(addresses, of(server))
	}
	return addresses
}

// url is where the programs of a cluster connect: to its own NATS, else to the hub.
func (h *hub) url(cluster string) string {
	if url, ok := h.embedded[cluster]; ok {
		return url
	}
	if leaf := h.leaves[cluster]; leaf != nil {
		return leaf.URL()
	}
	return h.URL()
}

// options returns the options of a cluster's programs, with the users that render.sh has created.
func (h *hub) options(cluster string) programs.Options {
	args := func(role string) []string {
		return []string{"--nats-ca", h.Certificates.CA, "--nats-creds", h.Seed(cluster + "-" + role)}
	}
	return programs.Options{NATSURL: h.url(cluster), WatcherArgs: args("watcher"), ActuatorArgs: args("actuator")}
}

// connect connects as a user that render.sh has created, such as eu-watcher: the cluster and the role. Later errors of the
// server go to complaints, which may be nil.
func (h *hub) connect(user string, complaints func(error)) *nats.Conn {
	h.Helper()
	cluster, role, _ := strings.Cut(user, "-")
	options := bus.ConnectOptions{
		URL: h.url(cluster), CredsFile: h.Seed(user), CAFile: h.Certificates.CA, Name: "test", Cluster: cluster, Role: role,
	}
	switch role {
	case "operator":
		options.Role = ""
	case "reader":
		options.Role = "actuator"
	case "audit":
		options.Role = "watcher" // Which it is, without a permission in the cluster.
	}
	if complaints == nil {
		complaints = func(error) {}
	}
	ctx, stop := running.WithTimeout(h.Context(), testkit.Patience)
	defer stop()
	connection, err := bus.Connect(ctx, options, nats.PingInterval(testkit.Patience), // On a busy machine a ping may have no answer.
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { complaints(err) }))
	testkit.Must(h, err)
	h.Cleanup(connection.Close)
	return connection
}

func (h *hub) jetstream(user string) jetstream.JetStream {
	h.Helper()
	js, err := jetstream.New(h.connect(user, nil))
	testkit.Must(h, err)
	return js
}

// declare makes streams of an account, or changes them, as its operator. While the servers of the hub elect a leader, nobody answers.
func (h *hub) declare(account string, files ...string) {
	h.Helper()
	operator := h.jetstream(account + "-operator")
	for _, file := range files {
		var err error
		testkit.Await(h.T, file+" is declared", func(ctx context.Context) bool {
			ctx, cancel := context.WithTimeout(ctx, answered)
			defer cancel()
			err = h.Declare(ctx, operator, file)
			return err == nil
		}, func() string { return fmt.Sprint(err) })
	}
}

// declareFleet makes FLEET, and what is before it.
func (h *hub) declareFleet() {
	h.Helper()
	files, err := h.FleetStreams()
	testkit.Must(h, err)
	h.declare("fleet", files...)
}
