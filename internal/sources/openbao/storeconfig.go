package openbao

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// fileConfig is the content of the configuration file.
type fileConfig struct {
	Stores []storeConfig `json:"stores"`
	Audit  auditConfig   `json:"audit"`
}

// auditConfig contains the files of the HTTP audit receiver, which are read again when they change.
type auditConfig struct {
	// TokenFile is the file of bearer tokens, one per line: <store> <token>, or <token> if there is only one store.
	TokenFile string `json:"tokenFile"`
	// TLSCertFile and TLSKeyFile are the files of the certificate and its key. Without both, there is no TLS.
	TLSCertFile string `json:"tlsCertFile"`
	TLSKeyFile  string `json:"tlsKeyFile"`
}

// storeConfig configures one OpenBao or Vault.
type storeConfig struct {
	Name string `json:"name"` // in events; a DNS label
	// Address is the URL of the store. Default BAO_ADDR or VAULT_ADDR.
	Address string   `json:"address"`
	Aliases []string `json:"aliases"` // other URLs of the same store in SecretStores
	// Namespace contains the mounts and the login. Default BAO_NAMESPACE, VAULT_NAMESPACE or else the root namespace.
	Namespace string     `json:"namespace"`
	TLS       tlsConfig  `json:"tls"`
	Auth      authConfig `json:"auth"`
	Poll      pollConfig `json:"poll"`
	// OmitAuthors omits from events the author of a change, which the audit log names. Default false.
	OmitAuthors bool `json:"omitAuthors"`
	// Lag is how long a server of the store may answer reads without a change that another one has, in whole seconds. Default 0s.
	Lag string `json:"lag"`

	// These are the parsed values of the fields above.
	servers  []string
	interval time.Duration
	lag      time.Duration
}

type tlsConfig struct {
	// CACertFile is the certificate authority of the store. Default BAO_CACERT, VAULT_CACERT or else the authorities of the system.
	CACertFile string `json:"caCertFile"`
	ServerName string `json:"serverName"` // required name in the store's certificate; default: the host of the address
}

type pollConfig struct {
	Interval string `json:"interval"` // between two polls; default 1m
	// Mounts are the KV v2 mounts to poll, each by its path or by <namespace>/<path>.
	Mounts []string `json:"mounts"`
	// Referenced polls the referenced paths, except those in mounts that are polled as a whole.
	Referenced bool `json:"referenced"`
	// DatabaseMounts and LDAPMounts are the mounts whose static roles are polled.
	DatabaseMounts []string `json:"databaseMounts"`
	LDAPMounts     []string `json:"ldapMounts"`
}

func (p *pollConfig) enabled() bool {
	return p.Referenced || len(p.Mounts)+len(p.DatabaseMounts)+len(p.LDAPMounts) > 0
}

// takeEnvironment sets empty fields from the variables of the stores' own command lines, for a single store: no other one must get its token.
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

func (s *storeConfig) resolve() []error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if wrong := validation.IsDNS1123Label(s.Name); len(wrong) > 0 {
		complain("name: %q is not a DNS label, want lower-case letters, digits and dashes, at most 63", s.Name)
	}
	if s.Address == "" {
		complain("address: is empty, want the URL of the store")
	}
	for i, server := range append([]string{s.Address}, s.Aliases...) {
		field := "address"
		if i > 0 {
			field = fmt.Sprintf("aliases[%d]", i-1)
		}
		normal, err := storeAddress(server)
		switch {
		case err != nil && server != "":
			// The text is not quoted, because it may contain a password.
			complain("%s: is not the URL of a store, want https://host:port: %w", field, err)
		case err == nil && !slices.Contains(s.servers, normal):
			s.servers = append(s.servers, normal)
		}
	}
	s.Namespace = strings.Trim(s.Namespace, "/")
	if s.Namespace != "" && !isPath(s.Namespace) {
		complain("namespace: %q is not the path of a namespace, want one such as team-a or team-a/prod", s.Namespace)
	}
	problems = append(problems, s.Auth.resolve()...)
	if s.interval = time.Minute; s.Poll.Interval != "" {
		var err error
		if s.interval, err = time.ParseDuration(s.Poll.Interval); err != nil || s.interval < time.Second {
			complain("poll.interval: %q is not a duration of a second or more, want one such as 30s or 1m", s.Poll.Interval)
		}
	}
	if s.Lag != "" {
		var err error
		if s.lag, err = time.ParseDuration(s.Lag); err != nil || s.lag < 0 || s.lag >= events.MaxLag || s.lag%time.Second != 0 {
			complain("lag: %q is not a number of whole seconds below %s, want one such as 0s or 10s", s.Lag, events.MaxLag)
		}
	}
	problems = append(problems, resolveMounts("mounts", s.Poll.Mounts)...)
	problems = append(problems, resolveMounts("databaseMounts", s.Poll.DatabaseMounts)...)
	return append(problems, resolveMounts("ldapMounts", s.Poll.LDAPMounts)...)
}

func resolveMounts(field string, paths []string) (problems []error) {
	for i, path := range paths {
		if paths[i] = strings.Trim(path, "/"); !isPath(paths[i]) {
			err := fmt.Errorf("poll.%s[%d]: %q is not the path of a mount, want one such as secret or team-a/secret", field, i, path)
			problems = append(problems, err)
		}
	}
	return problems
}

// storeAddress returns the normal form of a store's URL, or its problem.
func storeAddress(text string) (string, error) {
	server, err := url.Parse(text)
	if err != nil {
		// The error quotes the URL, which may contain a password.
		return "", errors.New("malformed")
	}
	scheme := strings.ToLower(server.Scheme)
	switch {
	case scheme != "https" && scheme != "http":
		return "", errors.New("the scheme is neither https nor http")
	case server.Host == "" || server.Opaque != "":
		return "", errors.New("no host")
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return "", errors.New("more than a host and a path")
	}
	return events.StoreAddress(text), nil
}

func loadConfig(path string) (fileConfig, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return fileConfig{}, fmt.Errorf("--openbao-config: reading: %w", err)
	}
	config, err := parseConfig(content, os.Getenv)
	if err == nil {
		return config, nil
	}
	var problems []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		problems = append(problems, fmt.Errorf("--openbao-config: %s: %s", path, line))
	}
	return fileConfig{}, errors.Join(problems...)
}

// parseConfig decodes a configuration and reports all its problems, one line each. getenv is os.Getenv.
func parseConfig(content []byte, getenv func(string) string) (fileConfig, error) {
	var c fileConfig
	if err := kube.DecodeStrict(content, &c); err != nil {
		return c, err
	}
	if len(c.Stores) == 0 {
		return c, errors.New("stores: is empty, want at least one")
	}
	if len(c.Stores) == 1 {
		c.Stores[0].takeEnvironment(getenv)
	}
	var problems []error
	names := map[string]bool{}
	for i := range c.Stores {
		s := &c.Stores[i]
		for _, problem := range s.resolve() {
			problems = append(problems, fmt.Errorf("stores[%d].%w", i, problem))
		}
		if names[s.Name] {
			problems = append(problems, fmt.Errorf("stores[%d].name: %q appears twice, want a name for each store", i, s.Name))
		}
		names[s.Name] = true
	}
	if (c.Audit.TLSCertFile == "") != (c.Audit.TLSKeyFile == "") {
		problems = append(problems, errors.New("audit: one of tlsCertFile and tlsKeyFile is empty, want both or neither"))
	}
	return c, errors.Join(problems...)
}
