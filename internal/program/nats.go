package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/bus/embedded"
)

// NATS is the program that runs the NATS server of an installation in a process of its own. It has no client of the API server, because it parses
// messages of others, which the process that may write workloads should not do. Its fields are its options.
type NATS struct {
	// Process contains the options of the process. Cluster is only a label of the metrics; Kube and NATS are not used.
	Process Options
	Server  embedded.Options
	// StorageKeyFile contains the key that encrypts the streams. If it is empty, or the file does not exist, new streams are not encrypted.
	StorageKeyFile string

	running atomic.Pointer[embedded.Server] // the server, after its start
}

// NewNATS returns a server with the defaults.
func NewNATS(version string) *NATS {
	return &NATS{Process: defaultOptions("nats", version)}
}

// AddFlags adds the flags of the options.
func (n *NATS) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&n.Process.Cluster, "cluster", "", "`name` of the cluster, for the metrics")
	n.Process.addServingFlags(flags)
	flags.StringVar(&n.Server.StoreDir, "nats-store-dir", "", "`directory` for the streams; required")
	flags.StringVar(&n.Server.ConfigFile, "nats-config", "", configUsage)
	flags.StringVar(&n.StorageKeyFile, "nats-storage-key", "",
		"`file` with the key that encrypts the streams; a directory with unencrypted streams stays unencrypted")
}

// Run runs the server until ctx ends or a step fails. An error about the options has a line for each problem. Log lines go to log.
func (n *NATS) Run(ctx context.Context, log io.Writer, build Build) error {
	err := n.Process.validate()
	if n.Server.StoreDir == "" {
		err = errors.Join(err, errors.New("--nats-store-dir: is empty, want a directory for the streams"))
	}
	if err != nil {
		return err
	}
	if n.StorageKeyFile != "" {
		if n.Server.StorageKey, err = embedded.ReadStorageKey(n.StorageKeyFile); err != nil {
			return fmt.Errorf("--nats-storage-key: %w", err)
		}
	}
	_, lock, err := lockFirst("--nats-store-dir", []string{n.Server.StoreDir})
	if err != nil {
		return err
	}
	p := program{Name: "nats", Build: build, Options: n.Process, Log: log}
	serve := func(ctx context.Context, r *runtime) error { return n.serve(ctx, r, p) }
	return errors.Join(p.within(ctx, serve), lock.Close())
}

// serve runs the server until ctx ends, and returns why it ended.
func (n *NATS) serve(ctx context.Context, r *runtime, p program) error {
	if n.StorageKeyFile != "" && n.Server.StorageKey == "" {
		r.Logger.WarnContext(ctx, "the key of the nats storage is missing", "file", n.StorageKeyFile)
	}
	r.Health.AddReadiness("jetstream", n.ready)
	if err := r.listen(ctx, p); err != nil {
		return err
	}
	server, err := r.startNATS(ctx, n.Server)
	if err != nil {
		return err
	}
	n.running.Store(server)
	if p.SmallHeap > 0 {
		forgetCode() // That of the start is not needed again.
	}
	<-ctx.Done()
	return ctx.Err()
}

func (n *NATS) ready() error {
	if server := n.running.Load(); server != nil {
		return server.Ready()
	}
	return errors.New("the nats server is starting")
}
