package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// layOut gives each actuator's server an address, a store and a configuration, and returns their flags.
func (i *installation) layOut(dir string, actuators int) ([][]string, error) {
	clients, err := process.FreePorts(actuators)
	if err != nil {
		return nil, err
	}
	routes, err := process.FreePorts(actuators)
	if err != nil {
		return nil, err
	}
	var servers [][]string
	for n := range actuators {
		store := filepath.Join(dir, "nats-"+strconv.Itoa(n))
		i.stores, i.addresses = append(i.stores, store), append(i.addresses, process.Address(clients[n]))
		config, path := fmt.Sprintf("listen: %q\n", i.addresses[n]), filepath.Join(dir, fmt.Sprintf("nats-%d.conf", n))
		if actuators > 1 {
			config += clusterConfig(n, routes)
		}
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			return nil, fmt.Errorf("configuring NATS: %w", err)
		}
		servers = append(servers, []string{"--nats-config", path, "--nats-store-dir", store})
	}
	return servers, nil
}

// clusterConfig returns the configuration of one of several servers, as in the component high-availability, but on loopback. The servers
// do not advertise each other to clients, because the watcher must stay on its link.
func clusterConfig(n int, ports []int) string {
	var routes []string
	for _, port := range ports {
		routes = append(routes, "nats://"+process.Address(port))
	}
	return fmt.Sprintf("server_name: keyturn-actuator-%d\ncluster: {\n  name: keyturn\n  listen: %q\n  no_advertise: true\n  routes: [%s]\n}\n",
		n, process.Address(ports[n]), strings.Join(routes, ", "))
}

// connect creates the links.
func (i *installation) connect(ctx context.Context, cp *testbed.ControlPlane) error {
	api, err := url.Parse(cp.Config().Host)
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	for name, targets := range map[string][]string{watcherNATS: i.addresses, watcherAPI: {api.Host}, actuatorAPI: {api.Host}} {
		l, err := newLink(ctx, targets...)
		if err != nil {
			return err
		}
		i.links[name] = l
	}
	return nil
}
