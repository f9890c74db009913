package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testbed"
)

// replicas is the number of servers of the hub, and of replicas of each stream.
const replicas = 3

// hubConfig is the configuration of deploy/nats/hub without TLS and accounts: all clusters share the streams.
const hubConfig = `server_name: $NATS_NAME
listen: $NATS_LISTEN
http: $NATS_MONITOR
jetstream: { store_dir: $NATS_STORE, max_file: 64GB }
cluster: { name: scale, listen: $NATS_ROUTE_LISTEN, routes: $NATS_ROUTES }
`

// hub is the NATS that all clusters share.
type hub struct {
	servers []*testbed.NATSServer
	stores  []string
}

func startHub(ctx context.Context, dir string) (*hub, error) {
	h := &hub{}
	config := filepath.Join(dir, "hub.conf")
	if err := os.WriteFile(config, []byte(hubConfig), 0o600); err != nil {
		return nil, err
	}
	var routes []string
	for i := range replicas {
		name := fmt.Sprintf("hub-%d", i)
		server, err := testbed.NewNATSServer(ctx, testbed.NATSOptions{Name: name, Config: config, Dir: filepath.Join(dir, name), Log: os.Stderr})
		if err != nil {
			return nil, err
		}
		h.servers, h.stores = append(h.servers, server), append(h.stores, filepath.Join(dir, name, "store"))
		routes = append(routes, server.RouteURL())
	}
	for _, server := range h.servers {
		server.SetEnv("NATS_ROUTES=[" + strings.Join(routes, ", ") + "]")
		if err := server.Launch(); err != nil {
			h.stop()
			return nil, err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := h.declare(bounded); err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

func (h *hub) declare(ctx context.Context) error {
	for _, server := range h.servers {
		if err := server.Ready(ctx); err != nil {
			return err
		}
	}
	connection, err := nats.Connect(h.url())
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	// A request from before the servers have elected a leader is never answered, so that one attempt would take all of the time.
	var last error
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		last = events.Declare(attempt, js, replicas)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func (h *hub) url() string {
	var urls []string
	for _, server := range h.servers {
		urls = append(urls, "nats://"+server.Address())
	}
	return strings.Join(urls, ",")
}

func (h *hub) stop() {
	for _, server := range h.servers {
		server.Stop()
	}
}

// usage is the average usage of a server of the hub.
type usage struct {
	memory, disk int64
	cpu          time.Duration
}

func (h *hub) usage() (usage, error) {
	var u usage
	for i, server := range h.servers {
		memory, err := server.Process().Memory()
		if err != nil {
			return u, err
		}
		cpu, err := server.Process().CPU()
		if err != nil {
			return u, err
		}
		disk, err := sizeOf(h.stores[i])
		if err != nil {
			return u, err
		}
		u.memory, u.disk, u.cpu = u.memory+memory.RSS/replicas, u.disk+disk/replicas, u.cpu+cpu/replicas
	}
	return u, nil
}

// sizeOf is how many bytes the files of a folder have. One that goes meanwhile has none.
func sizeOf(dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // it is gone
		}
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size, err
}
