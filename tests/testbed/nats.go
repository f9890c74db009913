package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// NATSOptions configure a NATS server.
type NATSOptions struct {
	// Name is the name of the server. Required, and different for each server of a cluster.
	Name string
	// Config is the path of the configuration. Like the files in deploy/nats, it may refer to these variables: NATS_NAME,
	// NATS_LISTEN, NATS_ROUTE_LISTEN, NATS_LEAF_LISTEN, NATS_MONITOR, NATS_STORE, NATS_TLS_CERT, NATS_TLS_KEY and NATS_TLS_CA.
	Config string
	// Dir holds the store, and the logs. Required.
	Dir string
	// Certificates are presented to clients and to other servers. Required.
	Certificates Certificates
}

// NATSServer is a separate NATS server on loopback. It keeps its ports and its store when it is started again. Its methods are
// safe for concurrent use.
type NATSServer struct {
	opts                         NATSOptions
	binary                       string
	client, route, leaf, monitor int

	mu      sync.Mutex
	env     []string
	process *process.Process
	starts  int
}

// NewNATSServer prepares a server, but does not start it. If necessary, the server is built first.
func NewNATSServer(ctx context.Context, opts NATSOptions) (*NATSServer, error) {
	binary, err := build.Binary(ctx, io.Discard, build.NATS)
	if err != nil {
		return nil, err
	}
	if opts.Dir, err = process.MakeDir(opts.Dir); err != nil {
		return nil, fmt.Errorf("prepare nats: %w", err)
	}
	free, err := process.FreePorts(4)
	if err != nil {
		return nil, fmt.Errorf("prepare nats: %w", err)
	}
	return &NATSServer{opts: opts, binary: binary, client: free[0], route: free[1], leaf: free[2], monitor: free[3]}, nil
}

// SetEnv adds variables to the environment with which the server is started.
func (s *NATSServer) SetEnv(env ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.env = append(s.env, env...)
}

// URL returns the URL for clients.
func (s *NATSServer) URL() string { return "tls://" + s.Address() }

// Address returns the host and the port for clients.
func (s *NATSServer) Address() string { return process.Address(s.client) }

// RouteURL returns the URL for the other servers of its cluster.
func (s *NATSServer) RouteURL() string { return "nats-route://" + process.Address(s.route) }

// LeafAddress returns the host and the port for leaf nodes.
func (s *NATSServer) LeafAddress() string { return process.Address(s.leaf) }

// Launch starts the server, for the first time or after [NATSServer.Kill], and does not wait for it.
func (s *NATSServer) Launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && !s.process.Ended() {
		return fmt.Errorf("start %s: it is running", s.opts.Name)
	}
	s.starts++
	p, err := process.Start(process.Options{
		Path: s.binary, Args: []string{"-c", s.opts.Config}, Name: s.opts.Name,
		LogFile: filepath.Join(s.opts.Dir, fmt.Sprintf("%s-%d.log", s.opts.Name, s.starts)),
		Env: append([]string{
			"NATS_NAME=" + s.opts.Name,
			"NATS_LISTEN=" + process.Address(s.client),
			"NATS_ROUTE_LISTEN=" + process.Address(s.route),
			"NATS_LEAF_LISTEN=" + process.Address(s.leaf),
			"NATS_MONITOR=" + process.Address(s.monitor),
			"NATS_STORE=" + filepath.Join(s.opts.Dir, "store"),
			"NATS_TLS_CERT=" + s.opts.Certificates.Cert,
			"NATS_TLS_KEY=" + s.opts.Certificates.Key,
			"NATS_TLS_CA=" + s.opts.Certificates.CA,
		}, s.env...),
	})
	if err != nil {
		return err
	}
	s.process = p
	return nil
}

// Ready waits until the server and its streams are healthy.
func (s *NATSServer) Ready(ctx context.Context) error {
	p := s.Process()
	if p == nil {
		return errors.New("nats was not started")
	}
	return p.WaitFor(ctx, func(ctx context.Context) error {
		_, err := s.told(ctx, "/healthz")
		return err
	})
}

// LeafAccounts returns the accounts of the leaf nodes that are connected to the server.
func (s *NATSServer) LeafAccounts(ctx context.Context) ([]string, error) {
	content, err := s.told(ctx, "/leafz")
	if err != nil {
		return nil, fmt.Errorf("ask %s for its leaf nodes: %w", s.opts.Name, err)
	}
	var leafz struct{ Leafs []struct{ Account string } }
	if err := json.Unmarshal(content, &leafz); err != nil {
		return nil, fmt.Errorf("ask %s for its leaf nodes: %w", s.opts.Name, err)
	}
	var accounts []string
	for _, leaf := range leafz.Leafs {
		accounts = append(accounts, leaf.Account)
	}
	return accounts, nil
}

// told reads a path of the server's monitoring.
func (s *NATSServer) told(ctx context.Context, path string) ([]byte, error) {
	client := &http.Client{Timeout: process.StartTimeout}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+process.Address(s.monitor)+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(response.Body)
}

// Process returns the server's last process, or nil if it was never started.
func (s *NATSServer) Process() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Kill ends the server like a crash, and waits until it is gone.
func (s *NATSServer) Kill() {
	if p := s.Process(); p != nil {
		p.Kill()
	}
}

// Stop ends the server and waits for it.
func (s *NATSServer) Stop() {
	if p := s.Process(); p != nil {
		// How it ends does not matter.
		_ = p.Stop(process.StopGrace)
	}
}
