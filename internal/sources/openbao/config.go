package openbao

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/configfile"
	"github.com/keyturn/keyturn/internal/events"
)

// config is the content of the configuration file.
type config struct {
	Stores []storeConfig `json:"stores"`
}

// storeConfig is one OpenBao or Vault.
type storeConfig struct {
	// Name is what the store is called in events. A DNS label.
	Name string `json:"name"`
	// Address is the URL under which the store is asked. BAO_ADDR or VAULT_ADDR where it is empty.
	Address string `json:"address"`
	// Aliases are other URLs of the same store, as SecretStores may name it.
	Aliases []string `json:"aliases"`
	// Namespace is the namespace in the store that the mounts and the login are in. BAO_NAMESPACE or VAULT_NAMESPACE where it is
	// empty, the root namespace where these are.
	Namespace string      `json:"namespace"`
	TLS       tlsConfig   `json:"tls"`
	Auth      authConfig  `json:"auth"`
	Poll      pollConfig  `json:"poll"`
	Audit     auditConfig `json:"audit"`
	// SocketListen is the address of the store's own receiver of the socket audit device, host:port or unix:/path.
	SocketListen string `json:"socketListen"`

	// What the fields above mean.
	servers  []string
	interval time.Duration
	peers    []netip.Prefix
}

type tlsConfig struct {
	// CACertFile is what the store's certificate is verified with. BAO_CACERT or VAULT_CACERT where it is empty, the
	// system's where these are.
	CACertFile string `json:"caCertFile"`
	// ClientCertFile and ClientKeyFile are the client's certificate. They are read again when they have changed.
	ClientCertFile string `json:"clientCertFile"`
	ClientKeyFile  string `json:"clientKeyFile"`
	// ServerName is the name that the store's certificate must have, where it is not that of the address.
	ServerName string `json:"serverName"`
}

// pollConfig is what of the store is polled.
type pollConfig struct {
	// Interval is the time between two polls. Default 1m.
	Interval string `json:"interval"`
	// Mounts are the KV v2 mounts to poll, each by its path or by <namespace>/<path>.
	Mounts []string `json:"mounts"`
	// Referenced polls the paths that somebody reads, where their mount is not polled as a whole.
	Referenced bool `json:"referenced"`
	// DatabaseMounts and LDAPMounts are the mounts whose static roles are polled.
	DatabaseMounts []string `json:"databaseMounts"`
	LDAPMounts     []string `json:"ldapMounts"`
}

// enabled tells whether anything is polled.
func (p *pollConfig) enabled() bool {
	return p.Referenced || len(p.Mounts)+len(p.DatabaseMounts)+len(p.LDAPMounts) > 0
}

type auditConfig struct {
	// Peers are the networks whose hosts may connect to the receiver of the socket audit device, in CIDR notation. They are needed
	// where it does not listen on the loopback or a unix socket, for the device cannot authenticate.
	Peers []string `json:"peers"`
}

const defaultInterval = time.Minute

// parseConfig reads a configuration and reports everything that is wrong with it, a line each. getenv is os.Getenv.
func parseConfig(content []byte, getenv func(string) string) ([]storeConfig, error) {
	var c config
	if err := configfile.Decode(content, &c); err != nil {
		return nil, err
	}
	if len(c.Stores) == 0 {
		return nil, errors.New("stores: is empty, want at least one")
	}
	if len(c.Stores) == 1 {
		c.Stores[0].takeEnvironment(getenv)
	}
	var problems []error
	names, addresses := map[string]bool{}, map[string]bool{}
	for i := range c.Stores {
		s := &c.Stores[i]
		at := "stores[" + strconv.Itoa(i) + "]"
		for _, problem := range s.resolve() {
			problems = append(problems, fmt.Errorf("%s.%w", at, problem))
		}
		if names[s.Name] {
			problems = append(problems, fmt.Errorf("%s.name: %q is there twice", at, s.Name))
		}
		if s.SocketListen != "" && addresses[s.SocketListen] {
			problems = append(problems, fmt.Errorf("%s.socketListen: %q is there twice, want an address for each store", at, s.SocketListen))
		}
		names[s.Name], addresses[s.SocketListen] = true, true
	}
	return c.Stores, errors.Join(problems...)
}

// takeEnvironment fills what the file left out from the variables that the stores' own command lines know. It is for a
// configuration of one store only: a token must not be sent to a store that it is not of.
func (s *storeConfig) takeEnvironment(getenv func(string) string) {
	take := func(field *string, name string) {
		for _, prefix := range []string{"BAO_", "VAULT_"} {
			if *field == "" {
				*field = getenv(prefix + name)
			}
		}
	}
	take(&s.Address, "ADDR")
	take(&s.Namespace, "NAMESPACE")
	take(&s.TLS.CACertFile, "CACERT")
	if s.Auth == (authConfig{}) {
		take(&s.Auth.Token, "TOKEN")
	}
}

// resolve checks the fields, fills in defaults and computes what they mean.
func (s *storeConfig) resolve() []error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if wrong := validation.IsDNS1123Label(s.Name); len(wrong) > 0 {
		refuse("name: %q is not a DNS label, want lower-case letters, digits and dashes, at most 63", s.Name)
	}
	if s.Address == "" {
		refuse("address: is empty, want the URL of the store")
	}
	for i, server := range append([]string{s.Address}, s.Aliases...) {
		field := "address"
		if i > 0 {
			field = "aliases[" + strconv.Itoa(i-1) + "]"
		}
		normal, err := storeAddress(server)
		switch {
		case err != nil && server != "":
			// The text is not quoted: it may have a password in it.
			refuse("%s: is not the URL of a store, want https://host:port: %w", field, err)
		case err == nil && !slices.Contains(s.servers, normal):
			s.servers = append(s.servers, normal)
		}
	}
	s.Namespace = strings.Trim(s.Namespace, "/")
	if s.Namespace != "" && !isPath(s.Namespace) {
		refuse("namespace: %q is not the path of a namespace", s.Namespace)
	}
	if (s.TLS.ClientCertFile == "") != (s.TLS.ClientKeyFile == "") {
		refuse("tls.clientCertFile: %q and tls.clientKeyFile: %q, want both or neither", s.TLS.ClientCertFile, s.TLS.ClientKeyFile)
	}
	problems = append(problems, s.Auth.resolve()...)
	problems = append(problems, s.resolvePoll()...)
	for i, text := range s.Audit.Peers {
		peer, err := netip.ParsePrefix(text)
		if err != nil {
			refuse("audit.peers[%d]: %q is not a network, want CIDR notation, such as 10.0.0.0/8", i, text)
			continue
		}
		s.peers = append(s.peers, peer.Masked())
	}
	if s.SocketListen != "" {
		if err := s.checkSocket(s.SocketListen); err != nil {
			refuse("socketListen: %w", err)
		}
	}
	return problems
}

func (s *storeConfig) resolvePoll() []error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	s.interval = defaultInterval
	if s.Poll.Interval != "" {
		interval, err := time.ParseDuration(s.Poll.Interval)
		if err != nil || interval < time.Second {
			refuse("poll.interval: %q is not a time of a second or more, want one such as 30s or 1m", s.Poll.Interval)
		}
		s.interval = interval
	}
	for _, list := range []struct {
		field  string
		mounts []string
	}{{"mounts", s.Poll.Mounts}, {"databaseMounts", s.Poll.DatabaseMounts}, {"ldapMounts", s.Poll.LDAPMounts}} {
		for i, mount := range list.mounts {
			list.mounts[i] = strings.Trim(mount, "/")
			if !isPath(list.mounts[i]) {
				refuse("poll.%s[%d]: %q is not the path of a mount, want one such as secret or team-a/secret", list.field, i, mount)
			}
		}
	}
	if s.Poll.enabled() && s.Auth == (authConfig{}) {
		refuse("poll: needs credentials, want one of auth.token, auth.tokenFile, auth.appRole, auth.kubernetes")
	}
	return problems
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// checkSocket tells whether the receiver of the socket audit device may listen on the address.
func (s *storeConfig) checkSocket(text string) error {
	address, err := parseSocketAddress(text)
	if err != nil {
		return err
	}
	if !address.local() && len(s.peers) == 0 {
		return fmt.Errorf("%q can be reached from other hosts, and the device cannot authenticate: want audit.peers to name the networks of the store's servers", text)
	}
	return nil
}

// storeAddress returns the normal form of a store's URL, or what is wrong with it.
func storeAddress(text string) (string, error) {
	server, err := url.Parse(text)
	if err != nil {
		// The text of the error quotes the URL, which may hold a password.
		return "", errors.New("it is malformed")
	}
	scheme := strings.ToLower(server.Scheme)
	switch {
	case scheme != "https" && scheme != "http":
		return "", errors.New("the scheme is not https or http")
	case server.Host == "" || server.Opaque != "":
		return "", errors.New("it has no host")
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return "", errors.New("it has more than a host and a path")
	}
	return events.StoreAddress(text), nil
}

// isPath tells whether the text is a path in a store, without slashes around it: what a request can be made of.
func isPath(text string) bool {
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// loadConfig reads the configuration file.
func loadConfig(path string) ([]storeConfig, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--openbao-config: reading: %w", err)
	}
	stores, err := parseConfig(content, os.Getenv)
	if err == nil {
		return stores, nil
	}
	var problems []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		problems = append(problems, fmt.Errorf("--openbao-config: %s: %s", path, line))
	}
	return nil, errors.Join(problems...)
}
