package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// hubServers is how many servers a hub has. Streams with three replicas continue if one of them is down.
const hubServers = 3

// NATSHub is a NATS of three servers for many clusters, with the configuration that deploy/nats/render.sh writes.
type NATSHub struct {
	// Dir is the folder of its files.
	Dir string
	// Certificates are for the hub's servers and for the clusters' servers.
	Certificates Certificates
	// Servers are the three servers, once they are prepared.
	Servers []*NATSServer
	// deployed is the folder deploy/nats.
	deployed string
}

// NewNATSHub creates the certificates of a hub in a folder, but writes no configuration. Deployed is the path of deploy/nats.
func NewNATSHub(deployed, dir string) (*NATSHub, error) {
	certificates, err := NewCertificates(filepath.Join(dir, "tls"))
	if err != nil {
		return nil, err
	}
	return &NATSHub{Dir: filepath.Join(dir, "rendered"), Certificates: certificates, deployed: deployed}, nil
}

// Render runs render.sh, which writes the configuration for the clusters, given as its arguments, and creates missing keys. Stores is
// the cluster whose watcher watches the secret stores for all clusters. Empty means none.
func (h *NATSHub) Render(ctx context.Context, stores string, clusters ...string) error {
	nk, err := build.Binary(ctx, io.Discard, build.NATSKeys)
	if err != nil {
		return err
	}
	script := exec.CommandContext(ctx, "sh", append([]string{filepath.Join(h.deployed, "render.sh"), h.Dir}, clusters...)...)
	script.Env = append(os.Environ(), "NK="+nk, "STORES="+stores)
	if _, err := process.Capture(script); err != nil {
		return fmt.Errorf("render.sh: %w", err)
	}
	return h.limitStores()
}

// limitStores makes the servers accept streams however little disk space is free; the default limit is three quarters of the free space. The
// streams reserve gigabytes, more than half a gigabyte for each cluster, but the tests write only megabytes.
func (h *NATSHub) limitStores() error {
	configs, err := filepath.Glob(filepath.Join(h.Dir, "*", "server.conf"))
	if err != nil {
		return err
	}
	for _, config := range configs {
		content, err := os.ReadFile(config)
		if err != nil {
			return err
		}
		limited := strings.Replace(string(content), "store_dir: $NATS_STORE\n", "store_dir: $NATS_STORE\n  max_file: 4TB\n", 1)
		if err := os.WriteFile(config, []byte(limited), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Prepare prepares the three servers, with their stores in a folder, but does not start them.
func (h *NATSHub) Prepare(ctx context.Context, dir string) error {
	var routes []string
	for i := range hubServers {
		server, err := h.Server(ctx, fmt.Sprintf("hub-%d", i), "hub", dir)
		if err != nil {
			return err
		}
		h.Servers = append(h.Servers, server)
		routes = append(routes, server.RouteURL())
	}
	for _, server := range h.Servers {
		server.SetEnv("NATS_ROUTES=[" + strings.Join(routes, ", ") + "]")
	}
	return nil
}

// Server prepares a server with one of the written configurations: "hub", or that of a cluster.
func (h *NATSHub) Server(ctx context.Context, name, config, dir string) (*NATSServer, error) {
	return NewNATSServer(ctx, NATSOptions{
		Name: name, Config: filepath.Join(h.Dir, config, "server.conf"), Dir: filepath.Join(dir, name), Certificates: h.Certificates,
	})
}

// LaunchNATS starts servers and waits for all of them.
func LaunchNATS(ctx context.Context, servers ...*NATSServer) error {
	for _, server := range servers {
		if err := server.Launch(); err != nil {
			return err
		}
	}
	for _, server := range servers {
		if err := server.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// URL returns the URLs of the three servers, for programs that connect to any of them.
func (h *NATSHub) URL() string {
	urls := make([]string, 0, len(h.Servers))
	for _, server := range h.Servers {
		urls = append(urls, server.URL())
	}
	return strings.Join(urls, ",")
}

// Seed returns the path of the key of a user, such as eu-watcher or fleet-reader.
func (h *NATSHub) Seed(user string) string { return filepath.Join(h.Dir, "keys", user+".nk") }

// Declare creates or updates streams from written files, such as fleet or eu-changes, like `nats stream add --config` and edit. It
// needs the connection of the operator of their account.
func (h *NATSHub) Declare(ctx context.Context, operator jetstream.JetStream, files ...string) error {
	for _, file := range files {
		config, err := h.StreamConfig(file)
		if err != nil {
			return err
		}
		if err := declareStream(ctx, operator, config); err != nil {
			return fmt.Errorf("declaring %s: %w", file, err)
		}
	}
	return nil
}

// StreamConfig reads the configuration of a stream from one of the files that Declare takes.
func (h *NATSHub) StreamConfig(file string) (jetstream.StreamConfig, error) {
	var config jetstream.StreamConfig
	content, err := os.ReadFile(filepath.Join(h.Dir, "streams", file+".json"))
	if err != nil {
		return config, err
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return config, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
}

// FleetStreams returns the files of FLEET and of the streams that it collects, in the order that Declare needs.
func (h *NATSHub) FleetStreams() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(h.Dir, "streams", "fleet"))
	if err != nil {
		return nil, fmt.Errorf("reading the streams of the fleet: %w", err)
	}
	var files []string
	for _, entry := range entries {
		files = append(files, "fleet/"+strings.TrimSuffix(entry.Name(), ".json"))
	}
	return append(files, "fleet"), nil
}

// noPeers is the server's JSClusterNoPeersErr.
const noPeers jetstream.ErrorCode = 10005

// declareStream declares a stream. It retries while servers that have just started do not see each other yet.
func declareStream(ctx context.Context, operator jetstream.JetStream, config jetstream.StreamConfig) error {
	var refused *jetstream.APIError
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := operator.CreateOrUpdateStream(ctx, config)
		if errors.As(err, &refused) && refused.ErrorCode == noPeers {
			return false, nil
		}
		return true, err
	})
	if wait.Interrupted(err) && refused != nil {
		return refused
	}
	return err
}
