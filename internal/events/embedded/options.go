package embedded

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// syncInterval is how often the store is synced to disk, unless the configuration file says otherwise. After a crash of the
// machine, the watcher compares the cluster with the stream and publishes again what was lost.
const syncInterval = 10 * time.Second

// Options configure a Server.
type Options struct {
	// Listen is the address for other programs, host:port. Port -1 selects a free port. Empty means that the server is
	// reachable in this process only.
	Listen string
	// StoreDir is the folder for the streams. Required.
	StoreDir string
	// ConfigFile is a configuration file of nats-server, for authorization, accounts, TLS and leaf nodes. Its listen address is
	// ignored. Empty means none; then Listen must be a loopback address.
	ConfigFile string
}

// options returns the server's options, or an error that names the wrong field.
func (o Options) options() (*server.Options, error) {
	if o.StoreDir == "" {
		return nil, errors.New("embedded nats: no store directory")
	}
	options := &server.Options{}
	if o.ConfigFile != "" {
		var err error
		if options, err = server.ProcessConfigFile(o.ConfigFile); err != nil {
			return nil, fmt.Errorf("embedded nats: reading %s: %w", o.ConfigFile, err)
		}
	}
	if options.Cluster.Port != 0 || options.Gateway.Name != "" {
		return nil, fmt.Errorf("embedded nats: %s: an embedded server is one replica; use an external NATS for a cluster or a gateway",
			o.ConfigFile)
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

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// authenticates reports whether anonymous clients are rejected.
func authenticates(o *server.Options) bool {
	if o.NoAuthUser != "" || o.Websocket.NoAuthUser != "" || o.MQTT.NoAuthUser != "" {
		return false
	}
	return o.Username != "" || o.Authorization != "" || len(o.Users) > 0 || len(o.Nkeys) > 0 ||
		len(o.TrustedKeys) > 0 || len(o.TrustedOperators) > 0 || o.TLSVerify
}
