package embedded

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// syncInterval is how often the store is synced to disk, unless the configuration file says otherwise. After a power cut of the machine, a watcher
// publishes again what the stream has lost, so that with one server only the amount of lost history depends on the interval. If most of several
// servers lose power at once, what is published again may not be delivered to the webhook and to projectors (docs/operations.md).
//
// Syncing each message instead, as with "jetstream { sync: always }", would cost two fsyncs per change. On an SSD, publishing a change took 3.6 ms
// instead of 0.5 ms. On a network volume, it takes tens of milliseconds, so that a burst of 20,000 changes would take minutes longer.
const syncInterval = 2 * time.Second

// Options configures a Server.
type Options struct {
	// Listen is the address for other programs, host:port. Port -1 selects a free one. Empty means that only this process reaches it.
	Listen   string
	StoreDir string // the folder for the streams; required
	// ConfigFile is a configuration file of nats-server, for authorization, accounts, TLS and leaf nodes. Its listen address is
	// ignored, and an account named STREAMS owns the streams. Empty means no file. Then Listen must be a loopback address.
	ConfigFile string
	// Replicas is how many servers form a cluster: 1, 3 or 5. More than 1 requires a cluster block and a server_name in ConfigFile.
	Replicas int

	// certificate is what the server presents to its clients, and routes to the other servers, if ConfigFile has tls for them.
	certificate, routes *certificate
	free                func(dir string) (int64, error) // freeBytes, except in tests
}

// streamsAccount is the account of a configuration file that owns the streams.
const streamsAccount = "STREAMS"

// ownStreams makes the account that a configuration file calls streamsAccount the global account, which a file may not name. This way, the streams
// stay where they are when accounts are added to the file or removed from it.
func ownStreams(options *server.Options) {
	for _, account := range options.Accounts {
		if account.Name == streamsAccount {
			account.Name = server.DEFAULT_GLOBAL_ACCOUNT
		}
	}
}

// limited returns the server's options with a limit of the store, and whether the limit is ours. It is not if the configuration file has a
// max_file, which takes precedence, or if the volume cannot be measured, so that the server chooses the limit.
func (o Options) limited() (options *server.Options, ours bool, err error) {
	if options, err = o.options(); err != nil || options.JetStreamMaxStore > 0 {
		return options, false, err
	}
	if err := os.MkdirAll(o.StoreDir, 0o700); err != nil {
		return nil, false, fmt.Errorf("embedded nats: %w", err)
	}
	limit, err := storeLimit(o.StoreDir, o.free)
	if err != nil || limit <= 0 {
		return options, false, nil //nolint:nilerr // The server has a limit of its own.
	}
	options.JetStreamMaxStore = limit
	return options, true, nil
}

// keyWord matches a word of an error that has a part of a key, such as of the seed in leaf-key.conf.
var keyWord = regexp.MustCompile(`[^\s"]*[A-Z2-7]{20}[^\s"]*`)

// withoutKeys returns the text of an error about a configuration file without the keys in it: the server quotes a seed that it cannot use.
func withoutKeys(err error) string { return keyWord.ReplaceAllString(err.Error(), "...") }

// options returns the server's options, or an error that names the wrong field.
func (o Options) options() (*server.Options, error) {
	if o.StoreDir == "" {
		return nil, errors.New("embedded nats: no store directory")
	}
	options := &server.Options{}
	if o.ConfigFile != "" {
		var err error
		if options, err = server.ProcessConfigFile(o.ConfigFile); err != nil {
			return nil, fmt.Errorf("embedded nats: reading %s: %s", o.ConfigFile, withoutKeys(err))
		}
	}
	ownStreams(options)
	if err := o.present(options); err != nil {
		return nil, fmt.Errorf("embedded nats: reading the tls blocks of %s: %w", o.ConfigFile, err)
	}
	if err := o.checkCluster(options); err != nil {
		return nil, fmt.Errorf("embedded nats: %w", err)
	}
	options.JetStream = true
	options.StoreDir = o.StoreDir
	options.NoSigs = true
	options.NoLog = true
	if options.SyncInterval == 0 {
		options.SyncInterval = syncInterval
	}
	if o.Listen == "" {
		options.DontListen = true
		return options, nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded nats: listen %q: want host:port", o.Listen)
	}
	if options.Port, err = strconv.Atoi(port); err != nil || options.Port < -1 || options.Port > 65535 || options.Port == 0 {
		return nil, fmt.Errorf("embedded nats: listen %q: want host:port with a port from 1 to 65535", o.Listen)
	}
	options.Host = host
	if !isLoopback(host) && !authenticates(options) {
		return nil, fmt.Errorf("embedded nats: listen %q is not a loopback address: want a config file with an authorization or "+
			"accounts block and without no_auth_user, or 127.0.0.1", o.Listen)
	}
	return options, nil
}

func (o Options) present(options *server.Options) error {
	if options.TLSConfig != nil {
		if err := o.certificate.present(options.TLSConfig, nil, o.ConfigFile, "tls"); err != nil {
			return err
		}
	}
	if options.Cluster.TLSConfig == nil {
		return nil
	}
	// The server knows the CA of the others from its start, and they know that of this one. A certificate of another CA would end their cluster.
	return o.routes.present(options.Cluster.TLSConfig, options.Cluster.TLSConfig.ClientCAs, o.ConfigFile, "cluster", "tls")
}

// checkCluster returns an error unless the configuration has a valid cluster block for several replicas, and none for a single one.
func (o Options) checkCluster(options *server.Options) error {
	clustered := options.Cluster.Port != 0
	switch {
	case o.Replicas < 0 || o.Replicas > 5 || o.Replicas > 0 && o.Replicas%2 == 0:
		return fmt.Errorf("%d replicas: want 1, 3 or 5", o.Replicas)
	case options.Gateway.Name != "":
		return fmt.Errorf("%s: has a gateway block; use an external NATS for that", o.ConfigFile)
	case clustered && o.Replicas <= 1:
		return fmt.Errorf("%s: has a cluster block, want 3 or 5 replicas with it", o.ConfigFile)
	case !clustered && o.Replicas > 1:
		return fmt.Errorf("%d replicas: want a config file with a cluster block", o.Replicas)
	case clustered && (options.Cluster.Name == "" || options.ServerName == ""):
		return fmt.Errorf("%s: want a server_name and a name in the cluster block", o.ConfigFile)
	case clustered && !isLoopback(options.Cluster.Host) && !verifiesRoutes(options):
		return fmt.Errorf("%s: the cluster block listens on %q, want tls with verify in it, or 127.0.0.1: "+
			"anybody who connects as a server can restart workloads", o.ConfigFile, options.Cluster.Host)
	}
	return nil
}

// verifiesRoutes reports whether only servers with a certificate of the cluster's CA may connect as servers.
func verifiesRoutes(options *server.Options) bool {
	config := options.Cluster.TLSConfig
	return config != nil && config.ClientAuth == tls.RequireAndVerifyClientCert
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func authenticates(o *server.Options) bool {
	if o.NoAuthUser != "" || o.Websocket.NoAuthUser != "" || o.MQTT.NoAuthUser != "" {
		return false
	}
	return o.Username != "" || o.Authorization != "" || len(o.Users) > 0 || len(o.Nkeys) > 0 ||
		len(o.TrustedKeys) > 0 || len(o.TrustedOperators) > 0 || o.TLSVerify
}
