// Command vault runs the server of Vault for the tests: upstream's core behind upstream's HTTP handler, with the KV engines, the AppRole
// auth method, the audit device file, and data in files. Of upstream's command line, it has "server -config=FILE".
//
// It exists because upstream's command has every engine, auth method, database and storage, and the SDK of each cloud: three times as
// many packages. Seals, peers and metrics of clouds are imported by the core itself; go.mod replaces their modules by those in omitted.
// A change of these files needs a new revision in tests/testbed/build/servers.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-kms-wrapping/wrappers/aead/v2"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/audit"
	auditfile "github.com/hashicorp/vault/builtin/audit/file"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/command/server"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/helper/logging"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/hashicorp/vault/vault"
	"github.com/hashicorp/vault/vault/seal"
)

// Upstream's defaults.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	idleTimeout   = 5 * time.Minute
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	path := flags.String("config", "", "file with the configuration of the server, in HCL or JSON")
	if len(args) == 0 || args[0] != "server" {
		fmt.Fprintln(os.Stderr, "usage: vault server -config=FILE")
		return 2
	}
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *path, logging.NewVaultLogger(hclog.Info)); err != nil {
		fmt.Fprintln(os.Stderr, "vault:", err)
		return 1
	}
	return 0
}

// serve serves until the context ends, or a listener fails. The server is sealed until a request unseals it.
func serve(ctx context.Context, path string, logger hclog.Logger) error {
	config, err := server.LoadConfigFile(path)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	core, err := newCore(config, logger)
	if err != nil {
		return fmt.Errorf("make the core: %w", err)
	}
	ended := make(chan error, len(config.Listeners))
	for _, configured := range config.Listeners {
		listener, _, _, err := server.NewListener(configured, io.Discard, nil)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		handles := newServer(core, configured, logger)
		defer handles.Close()
		go func() { ended <- handles.Serve(listener) }()
	}
	select {
	case <-ctx.Done():
		return core.Shutdown()
	case err := <-ended:
		return errors.Join(fmt.Errorf("serve: %w", err), core.Shutdown())
	}
}

// newCore has the parts of upstream's configuration of the core that these tests use.
func newCore(config *server.Config, logger hclog.Logger) (*vault.Core, error) {
	if config.Storage == nil || config.Storage.Type != "file" {
		return nil, errors.New("the storage is not of the type file, which is the only one here")
	}
	storage, err := file.NewFileBackend(config.Storage.Config, logger.Named("storage.file"))
	if err != nil {
		return nil, fmt.Errorf("open the storage: %w", err)
	}
	return vault.NewCore(&vault.CoreConfig{
		RawConfig:     config,
		Physical:      storage,
		StorageType:   config.Storage.Type,
		RedirectAddr:  config.Storage.RedirectAddr,
		Seal:          vault.NewDefaultSeal(&seal.Access{Wrapper: aead.NewShamirWrapper()}),
		AuditBackends: map[string]audit.Factory{"file": auditfile.Factory},
		// Upstream also has it among the plugins, but makes it here.
		LogicalBackends: map[string]logical.Factory{"kv": kv.Factory},
		BuiltinRegistry: builtins{
			consts.PluginTypeSecrets:    {"kv": kv.Factory},
			consts.PluginTypeCredential: {"approle": approle.Factory},
		},
		Logger:       logger,
		DisableMlock: config.DisableMlock,
	})
}

func newServer(core *vault.Core, listener *configutil.Listener, logger hclog.Logger) *http.Server {
	return &http.Server{
		Handler:           vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: listener}),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          logger.StandardLogger(nil),
	}
}
