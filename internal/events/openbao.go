package events

import (
	"errors"
	"net/url"
	"strings"
)

// RootNamespace is the name that the root namespace of a secret store has here. The stores reserve it, so that no other
// namespace can have it.
const RootNamespace = "root"

// maxStoreName is how long the name of a source in a secret store may be, in bytes. A subject has to fit into a line of
// the NATS protocol, of 4096 bytes, with each byte of the name written as three.
const maxStoreName = 1024

// StorePath names a secret in an OpenBao or Vault.
type StorePath struct {
	// Store is the configured name of the store, a DNS label.
	Store string
	// Namespace is the namespace in the store without slashes around it, RootNamespace where it is in none.
	Namespace string
	// Mount is the path of the secrets engine without slashes around it: "secret".
	Mount string
	// Path is that of the secret in its mount, without "data/" or "metadata/": "shop/db".
	Path string
}

// Source is the path as the source of a change. Its name is <store>/<namespace>/<mount>/<path>, where a slash within the
// namespace or the mount is written as %2F, so that no two paths have the same name.
func (p StorePath) Source() Source {
	return Source{
		Kind: KindOpenBao,
		Name: p.Store + "/" + segment.Replace(p.Namespace) + "/" + segment.Replace(p.Mount) + "/" + p.Path,
	}
}

// Full is the path as it is given to the command line of the store: <namespace>/<mount>/<path>, or <mount>/<path> in the
// root namespace. It is what keyturn.dev/roll-on means by openbao:<path>.
func (p StorePath) Full() string {
	full := p.Mount + "/" + p.Path
	if p.Namespace == RootNamespace {
		return full
	}
	return p.Namespace + "/" + full
}

// segment writes a path as one segment of another.
var segment = strings.NewReplacer("%", "%25", "/", "%2F")

// StorePath reads the name of a source of KindOpenBao.
func (s Source) StorePath() (StorePath, error) {
	parts := strings.SplitN(s.Name, "/", 4)
	if s.Kind != KindOpenBao || len(parts) != 4 || len(s.Name) > maxStoreName {
		return StorePath{}, errors.New("the name is not <store>/<namespace>/<mount>/<path>")
	}
	p := StorePath{Store: parts[0], Path: parts[3]}
	var errs [2]error
	p.Namespace, errs[0] = url.PathUnescape(parts[1])
	p.Mount, errs[1] = url.PathUnescape(parts[2])
	switch {
	case errors.Join(errs[:]...) != nil || p.Source() != (Source{Kind: KindOpenBao, Name: s.Name}):
		return StorePath{}, errors.New("the namespace or the mount is not escaped as a segment")
	case !isLabel(p.Store):
		return StorePath{}, errors.New("the store is not a DNS label")
	}
	for _, part := range []string{p.Namespace, p.Mount, p.Path} {
		if part == "" || strings.Trim(part, "/") != part || !isText(part) {
			return StorePath{}, errors.New("a part of the path is empty, begins or ends with a slash, or is no text")
		}
	}
	return p, nil
}

// link is the "subject" attribute of events about the path: openbao://<store>/<mount>/<path>, with the namespace behind it
// where it is not the root.
func (p StorePath) link() string {
	link := url.URL{Scheme: "openbao", Host: p.Store, Path: "/" + p.Mount + "/" + p.Path}
	if p.Namespace != RootNamespace {
		link.RawQuery = url.Values{"namespace": {p.Namespace}}.Encode()
	}
	return link.String()
}

// StoreState is what is said of a secret in a store besides its path.
type StoreState struct {
	// Servers are the addresses under which the store is known, for those who find it in a SecretStore.
	Servers []string `json:"servers,omitempty"`
	// Engine is the secrets engine: EngineKV, EngineDatabase or EngineLDAP.
	Engine string `json:"engine"`
	// Version is the number of the current version. Zero where the engine counts none.
	Version int64 `json:"version,omitempty"`
	// Revision is the last part of the event's id. It names the state of the secret the same way whichever way it was seen:
	// the version, what became of the version, or what the engine has in its place.
	Revision string `json:"revision"`
	// Operation is what was done, as the store's audit calls it. Empty where it was not seen in the audit.
	Operation string `json:"operation,omitempty"`
	// By is the display name of who did it. Empty where it is not known.
	By string `json:"by,omitempty"`
}

// The secrets engines whose secrets are watched.
const (
	EngineKV       = "kv"
	EngineDatabase = "database"
	EngineLDAP     = "ldap"
)

func (s *StoreState) validate() error {
	switch {
	case s.Engine != EngineKV && s.Engine != EngineDatabase && s.Engine != EngineLDAP:
		return errors.New("the engine is unknown")
	case s.Version < 0:
		return errors.New("the version is negative")
	case s.Revision == "" || len(s.Revision) > maxName || !isText(s.Revision):
		return errors.New("the revision is missing or malformed")
	}
	return nil
}
