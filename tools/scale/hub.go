package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testbed"
)

// replicas is the number of servers of the hub, and the number of replicas of each stream.
const replicas = 3

// memoryLimit is how much memory a server may use before it collects garbage more often. Without a limit, it takes twice the live memory, and
// three servers need more than most machines have. With 5 GiB and 200 clusters, the servers did little else than collect garbage.
const memoryLimit = "7GiB"

// hub is the NATS of all clusters: three servers.
type hub struct {
	*testbed.NATSHub
	stores []string
	// operator declares streams in the account of FLEET, and fleet checks the content of FLEET.
	operator jetstream.JetStream
	fleet    *fleet

	connections []*nats.Conn
}

// startHub starts the servers, with the users of the clusters, in a folder. Deployed is the path of deploy/nats.
func startHub(ctx context.Context, deployed, dir string, names []string) (*hub, error) {
	written, err := testbed.NewNATSHub(deployed, dir)
	if err != nil {
		return nil, err
	}
	h := &hub{NATSHub: written}
	if err := h.Render(ctx, "", names...); err != nil {
		return nil, err
	}
	if err := h.Prepare(ctx, dir); err != nil {
		return nil, err
	}
	for i, server := range h.Servers {
		server.SetEnv("GOMEMLIMIT=" + memoryLimit)
		h.stores = append(h.stores, filepath.Join(dir, fmt.Sprintf("hub-%d", i), "store"))
	}
	if err := h.launch(ctx); err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

// launch starts the servers, and makes the connections that do not belong to a cluster.
func (h *hub) launch(ctx context.Context) error {
	if err := testbed.LaunchNATS(ctx, h.Servers...); err != nil {
		return err
	}
	var err error
	if h.operator, err = h.jetstream(ctx, "fleet", "operator"); err != nil {
		return err
	}
	reader, err := h.jetstream(ctx, "fleet", "reader")
	h.fleet = newFleet(reader)
	return err
}

// options returns the options of a connection as one of the users of a cluster.
func (h *hub) options(cluster, role string) bus.ConnectOptions {
	options := bus.ConnectOptions{
		URL: h.URL(), CAFile: h.Certificates.CA, CredsFile: h.Seed(cluster + "-" + role), Name: "scale", Cluster: cluster, Role: role,
	}
	switch role {
	case "operator":
		options.Role = ""
	case "reader":
		options.Role = "actuator"
	}
	return options
}

// jetstream connects as a user. The connection stays open until the hub is stopped.
func (h *hub) jetstream(ctx context.Context, cluster, role string) (jetstream.JetStream, error) {
	connection, err := bus.Connect(ctx, h.options(cluster, role))
	if err != nil {
		return nil, err
	}
	h.connections = append(h.connections, connection)
	return jetstream.New(connection)
}

func (h *hub) stop() {
	for _, connection := range h.connections {
		connection.Close()
	}
	for _, server := range h.Servers {
		server.Stop()
	}
}

// usage is the average resource usage of a server of the hub.
type usage struct {
	memory, disk int64
	cpu          time.Duration
}

func (h *hub) usage() (usage, error) {
	var u usage
	for i, server := range h.Servers {
		memory, errMemory := server.Process().Memory()
		cpu, errCPU := server.Process().CPU()
		disk, errDisk := sizeOf(h.stores[i])
		if err := errors.Join(errMemory, errCPU, errDisk); err != nil {
			return u, err
		}
		u.memory, u.disk, u.cpu = u.memory+memory.RSS/replicas, u.disk+disk/replicas, u.cpu+cpu/replicas
	}
	return u, nil
}

// sizeOf returns the total size of the files in a folder. Files that are removed meanwhile count as empty.
func sizeOf(dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // the file is gone
		}
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size, err
}
