package secretstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/vault/api"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// Options configure a secret store. The zero value keeps no audit log.
type Options struct {
	// Dir has the data, the configuration and the logs. It is created if it does not exist, and kept when the store stops. It
	// must not have an earlier store, whose key would be unknown. Empty means a temporary folder that Stop removes.
	Dir string
	// Log receives the progress of building. Nil means none.
	Log io.Writer

	// AuditURL is the URL to which the server posts its audit log, with the http device that only OpenBao has; see [OpenBao].
	// It also has a file device, so that requests succeed even while nothing listens at the URL. Empty means that it has
	// neither.
	AuditURL string
	// AuditToken is the bearer token that the http device sends. Empty means none.
	AuditToken string
}

// Store is a secret store of one server, Vault or OpenBao. Its data is on disk, and survives a restart. Its methods may be
// called concurrently.
type Store struct {
	opts      Options
	binary    string
	dir       string
	port      int
	cluster   int // the port for other servers, of which there are none
	transport *http.Transport
	client    *api.Client

	mu      sync.Mutex
	process *process.Process
	starts  int
	key     string // the key that unseals; empty until the store is initialised
	stopped bool
}

// OpenBao reports whether stores are OpenBao, the binary that BAO_BIN names, instead of Vault. Only OpenBao has the http audit device,
// SCAN and namespaces.
func OpenBao() bool { return os.Getenv("BAO_BIN") != "" }

// Start starts a secret store on loopback, without TLS, initialises and unseals it, and mounts a KV store of version 2 at
// secret/. That takes a second. If necessary, Vault is built first, which the context also bounds. The store outlives the
// context: the caller ends it with [Store.Stop]. An error has the end of the server's log.
func Start(ctx context.Context, opts Options) (*Store, error) {
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	if opts.AuditURL != "" && !OpenBao() {
		return nil, errors.New("start the secret store: Vault has no http audit device")
	}
	binary, err := storeBinary(ctx, opts.Log)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, binary: binary, transport: &http.Transport{}}
	if err := s.create(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start the secret store: %w", err)
	}
	return s, nil
}

func storeBinary(ctx context.Context, log io.Writer) (string, error) {
	if OpenBao() {
		return os.Getenv("BAO_BIN"), nil
	}
	return build.Binary(ctx, log, build.Vault)
}

// create starts a store that has no data yet.
func (s *Store) create(ctx context.Context) error {
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.serve(ctx); err != nil {
		return err
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	if err := s.Unseal(ctx); err != nil {
		return err
	}
	return s.MountKV(ctx, "secret", 2)
}

func (s *Store) prepare() (err error) {
	if s.dir, err = process.MakeDir(s.opts.Dir); err != nil {
		return err
	}
	free, err := process.FreePorts(2)
	if err != nil {
		return err
	}
	s.port, s.cluster = free[0], free[1]
	if err := s.writeConfig(); err != nil {
		return err
	}
	s.client, err = api.NewClient(&api.Config{Address: s.Address(), HttpClient: &http.Client{Transport: s.transport}})
	if err != nil {
		return err
	}
	// A developer's environment may set one.
	s.client.ClearNamespace()
	s.client.SetCloneToken(true)
	return nil
}

// Start starts the server again after [Store.Kill], on the same port and with the same data, and unseals it. It returns an
// error if the server is running.
func (s *Store) Start(ctx context.Context) error {
	if err := s.serve(ctx); err != nil {
		return fmt.Errorf("start the secret store again: %w", err)
	}
	return s.Unseal(ctx)
}

// Kill ends the server like a crash, and waits until it is gone. It does nothing if the server is already down.
func (s *Store) Kill() {
	if p := s.Process(); p != nil {
		p.Kill()
	}
}

// Stop ends the server for good and waits for it. It removes the folder if Start created it. Calling it again does nothing.
func (s *Store) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	if s.process != nil {
		// How it ends does not matter: everything that it wrote is removed.
		_ = s.process.Stop(process.StopGrace)
	}
	s.transport.CloseIdleConnections()
	if s.opts.Dir == "" {
		_ = os.RemoveAll(s.dir)
	}
}

// Address returns the URL of the server.
func (s *Store) Address() string { return "http://" + process.Address(s.port) }

// Token returns the root token.
func (s *Store) Token() string { return s.client.Token() }

// Client returns a client with the root token, which never retries. It is shared: to use another token, namespace or header, clone it.
// The clone also has the token.
func (s *Store) Client() *api.Client { return s.client }

// Dir returns the folder with the data, the configuration and the logs.
func (s *Store) Dir() string { return s.dir }

// Process returns the server's last process, or nil if it was never started.
func (s *Store) Process() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// serve starts the server and waits until it responds, sealed or not.
func (s *Store) serve(ctx context.Context) error {
	p, err := s.launch()
	if err != nil {
		return err
	}
	return p.WaitFor(ctx, func(ctx context.Context) error {
		_, err := s.client.Sys().SealStatusWithContext(ctx)
		return err
	})
}

func (s *Store) launch() (*process.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return nil, errors.New("it was stopped")
	case s.process != nil && !s.process.Ended():
		return nil, errors.New("it is running")
	}
	s.starts++
	p, err := process.Start(process.Options{
		Path: s.binary, Args: []string{"server", "-config=" + s.configFile()},
		LogFile: filepath.Join(s.dir, fmt.Sprintf("server-%d.log", s.starts)),
		Env: []string{
			// The server looks for a token and for plugins in the home directory, and a developer's home may have some.
			"HOME=" + s.dir,
		},
	})
	if err != nil {
		return nil, err
	}
	s.process = p
	return p, nil
}
