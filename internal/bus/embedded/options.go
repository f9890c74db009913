package embedded

import (
	"cmp"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// syncInterval is how often the store is synced to disk by default. After a power cut, a watcher publishes the events again that the stream has lost,
// so with one server, only the amount of lost history depends on the interval. If most of several servers lose power at once, events that are
// published again may not be delivered to the webhook and to projectors (docs/operate/operations.md).
//
// Syncing each message instead, as with "jetstream { sync: always }", would cost two fsyncs per change. On an SSD, publishing a change took 3.6 ms
// instead of 0.5 ms. On a network volume, it takes tens of milliseconds, so that a burst of 20,000 changes would take minutes longer.
const syncInterval = 2 * time.Second

// Options configures a Server.
type Options struct {
	// Listen is the address for other programs, host:port, instead of that in ConfigFile. Port -1 selects a free one. Without either, only this
	// process reaches the server. An address other than loopback needs authentication in ConfigFile.
	Listen   string
	StoreDir string // the folder for the streams; required
	// ConfigFile is a configuration file of nats-server, for its address, authorization, accounts, TLS, leaf nodes and a cluster of 3 or 5 servers
	// with routes to all of them. An account named STREAMS owns the streams. Empty means no file.
	ConfigFile string
	// Reader is the public NKey of a user that reads the streams and writes nothing. If it is set, the only users are this one and that of this
	// process (see Server.ClientOption), ConfigFile must be empty, and Listen must be a loopback address. If it is empty, ConfigFile has the users.
	Reader string
	// StorageKey is the key with which the server encrypts its storage, see ReadStorageKey. An existing store without encryption stays unencrypted,
	// and one with another key is an error. Empty means that a new store is not encrypted.
	StorageKey string

	// certificate is the server's certificate for its clients, and routes that for other servers, if ConfigFile has tls blocks for them.
	certificate, routes *certificate
	free                func(dir string) (int64, error) // freeBytes, except in tests
	// own is the public NKey of this process, if there is a Reader.
	own string
}

//go:embed users.conf
var usersConfig string

// streamsAccount is the account of a configuration file that owns the streams.
const streamsAccount = "STREAMS"

// ownStreams makes the configuration file's account streamsAccount the global account, which a file may not name, so that the streams stay when
// accounts are added to the file or removed from it.
func ownStreams(options *server.Options) {
	for _, account := range options.Accounts {
		if account.Name == streamsAccount {
			account.Name = server.DEFAULT_GLOBAL_ACCOUNT
		}
	}
}

// keyWord matches a word of an error with a part of a key, such as of the seed in leaf-key.conf.
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
	if o.Reader != "" {
		if !nkeys.IsValidPublicUserKey(o.Reader) {
			return nil, errors.New("embedded nats: the key of the reader is no public NKey of a user")
		}
		if err := options.ProcessConfigString(strings.NewReplacer("$OWN_KEY", o.own, "$READER_KEY", o.Reader).Replace(usersConfig)); err != nil {
			return nil, fmt.Errorf("embedded nats: the users: %s", withoutKeys(err))
		}
	}
	ownStreams(options)
	if err := o.present(options); err != nil {
		return nil, fmt.Errorf("embedded nats: reading the tls blocks of %s: %w", o.ConfigFile, err)
	}
	if err := o.checkCluster(options); err != nil {
		return nil, fmt.Errorf("embedded nats: %w", err)
	}
	o.encrypt(options)
	// A reload sorts the routes in place, while goroutines that connect them read them. Sorted routes do not change.
	slices.SortFunc(options.Routes, func(a, b *url.URL) int { return cmp.Compare(a.String(), b.String()) })
	options.JetStream = true
	options.StoreDir = o.StoreDir
	options.NoSigs = true
	options.NoLog = true
	if options.SyncInterval == 0 {
		options.SyncInterval = syncInterval
	}
	if err := o.listen(options); err != nil {
		return nil, fmt.Errorf("embedded nats: %w", err)
	}
	return options, nil
}

// ValidateLoopback returns an error if Listen is not an address on which this machine alone can reach the server.
func (o Options) ValidateLoopback() error {
	o.Reader = o.Listen // A user with the reader's key reaches the server by a forwarded port.
	return o.listen(&server.Options{})
}

// listen sets the server's address. It returns an error for an invalid address, or one that anybody may reach.
func (o Options) listen(options *server.Options) error {
	if o.Listen != "" {
		host, port, err := net.SplitHostPort(o.Listen)
		if err != nil {
			return fmt.Errorf("listen %q: want host:port", o.Listen)
		}
		if options.Port, err = strconv.Atoi(port); err != nil || options.Port < -1 || options.Port > 65535 || options.Port == 0 {
			return fmt.Errorf("listen %q: want host:port with a port from 1 to 65535", o.Listen)
		}
		options.Host = host
	}
	switch {
	case options.Host == "" && options.Port == 0:
		options.DontListen = true
	case !isLoopback(options.Host) && o.Reader != "":
		return fmt.Errorf("listen %q is not a loopback address, want 127.0.0.1", o.Listen)
	case !isLoopback(options.Host) && !authenticates(options):
		return fmt.Errorf("listen %q is not a loopback address: want a config file with an authorization or accounts block and without "+
			"no_auth_user, or 127.0.0.1", net.JoinHostPort(options.Host, strconv.Itoa(options.Port)))
	}
	return nil
}

// encrypt gives the server the key of the storage, unless its configuration file has one.
func (o Options) encrypt(options *server.Options) {
	if o.StorageKey != "" && options.JetStreamKey == "" {
		options.JetStreamKey, options.JetStreamCipher = o.StorageKey, server.AES
	}
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
	// The servers load the CA of the others at their start. A certificate of another CA would end the cluster.
	return o.routes.present(options.Cluster.TLSConfig, options.Cluster.TLSConfig.ClientCAs, o.ConfigFile, "cluster", "tls")
}

// replicasOf returns the number of servers that replicate the streams. Each server of a cluster has routes to all of them, including itself.
func replicasOf(options *server.Options) int {
	if options.Cluster.Port == 0 {
		return 1
	}
	return len(options.Routes)
}

// checkCluster returns an error if the configuration has a cluster block that is not valid.
func (o Options) checkCluster(options *server.Options) error {
	clustered, replicas := options.Cluster.Port != 0, replicasOf(options)
	switch {
	case options.Gateway.Name != "":
		return fmt.Errorf("%s: has a gateway block; use an external NATS for that", o.ConfigFile)
	case clustered && replicas != 3 && replicas != 5:
		return fmt.Errorf("%s: the cluster block has %d routes, want those to all of 3 or 5 servers, this one included", o.ConfigFile, replicas)
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
