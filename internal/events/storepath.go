package events

import (
	"cmp"
	"errors"
	"net/url"
	"strings"
	"time"
)

// RootNamespace names the root namespace of a secret store. The stores reserve this name, so no other namespace has it.
const RootNamespace = "root"

// maxStoreName is the maximum size of the name of a KindOpenBao source, in bytes. Its subject must fit into a line of the
// NATS protocol, which has 4096 bytes, even if each byte of the name is encoded as three.
const maxStoreName = 1024

// StorePath names a secret in an OpenBao or Vault.
type StorePath struct {
	Store     string // the configured name of the store, a DNS label
	Namespace string // the store's namespace without slashes around it, or RootNamespace if there is none
	Mount     string // the path of the secrets engine without slashes around it: "secret"
	Path      string // the path of the secret in its mount, without "data/" or "metadata/": "shop/db"
}

// Source returns the path as the source of a change, with the name <store>/<namespace>/<mount>/<path>. A slash within the
// namespace or the mount is escaped as %2F, so that different paths have different names.
func (p StorePath) Source() Source {
	return Source{Kind: KindOpenBao, Name: p.Store + "/" + segment.Replace(p.Namespace) + "/" + segment.Replace(p.Mount) + "/" + p.Path}
}

// Full returns the path in the form of the store's command line: <namespace>/<mount>/<path>, or <mount>/<path> in the root
// namespace. The annotation keyturn.dev/roll-on uses it in openbao:<path>.
func (p StorePath) Full() string {
	full := p.Mount + "/" + p.Path
	if p.Namespace == RootNamespace {
		return full
	}
	return p.Namespace + "/" + full
}

// segment escapes a path for use as one segment of another.
var segment = strings.NewReplacer("%", "%25", "/", "%2F")

// StorePath parses the name of a source of KindOpenBao.
func (s Source) StorePath() (StorePath, error) {
	parts := strings.SplitN(s.Name, "/", 4)
	if s.Kind != KindOpenBao || len(parts) != 4 || len(s.Name) > maxStoreName {
		return StorePath{}, errors.New("the name is not <store>/<namespace>/<mount>/<path>")
	}
	p := StorePath{Store: parts[0], Path: parts[3]}
	p.Namespace, _ = url.PathUnescape(parts[1])
	p.Mount, _ = url.PathUnescape(parts[2])
	isPart := func(part string) bool { return part != "" && strings.Trim(part, "/") == part && isText(part) }
	err := cmp.Or(
		faultIf(p.Source().Name != s.Name, "the namespace or the mount is not escaped as a segment"),
		faultIf(!isLabel(p.Store), "the store is not a DNS label"),
		faultIf(!isPart(p.Namespace) || !isPart(p.Mount) || !isPart(p.Path), "a part of the path is empty, not text, or has a slash around it"))
	if err != nil {
		return StorePath{}, err
	}
	return p, nil
}

// Sharer returns the owner of the share of StreamHistory that the source's events use: a namespace, or the mount of a secret in a store, as
// <store>/<namespace>/<mount>, which cannot be the name of a namespace.
func (s Source) Sharer() string {
	if s.Kind != KindOpenBao {
		return s.Namespace
	}
	parts := strings.SplitN(s.Name, "/", 4)
	return strings.Join(parts[:min(len(parts), 3)], "/")
}

// link returns the "subject" attribute of events about the path: openbao://<store>/<mount>/<path>, with ?namespace= outside the root.
func (p StorePath) link() string {
	link := url.URL{Scheme: "openbao", Host: p.Store, Path: "/" + p.Mount + "/" + p.Path}
	if p.Namespace != RootNamespace {
		link.RawQuery = url.Values{"namespace": {p.Namespace}}.Encode()
	}
	return link.String()
}

// StoreState is the state of a secret in a KindOpenBao event, besides its path.
type StoreState struct {
	// Servers lists the addresses of the store, in the form of StoreAddress. They are used to match a SecretStore to the store.
	Servers []string `json:"servers,omitempty"`
	Engine  string   `json:"engine"`            // the secrets engine: EngineKV, EngineDatabase or EngineLDAP
	Version int64    `json:"version,omitempty"` // the number of the current version; zero if the engine has no versions
	// Revision is the last part of the event's id. It identifies the state of the secret, and is the same whether the audit
	// or the poller saw it: the version and its creation time, what happened to the version, or the engine's equivalent.
	Revision  string `json:"revision"`
	Operation string `json:"operation,omitempty"` // the operation in the store's audit; empty if the change was not seen there
	By        string `json:"by,omitempty"`        // the display name of the token that made the change; empty if unknown
	// LagSeconds is how long a server of the store may still answer without the change, according to the configuration of the store.
	LagSeconds int64 `json:"lagSeconds,omitempty"`
}

// MaxLag is the longest lag of a store's server. An older state that it still returns afterwards was restored.
const MaxLag = 5 * time.Minute

// The supported secrets engines.
const (
	EngineKV       = "kv"
	EngineDatabase = "database"
	EngineLDAP     = "ldap"
)

func (s *StoreState) validate() error {
	if s == nil {
		return errors.New("the state of the store is missing")
	}
	return cmp.Or(
		faultIf(s.Engine != EngineKV && s.Engine != EngineDatabase && s.Engine != EngineLDAP, "the engine is unknown"),
		faultIf(s.Version < 0, "the version is negative"),
		faultIf(s.LagSeconds < 0 || s.LagSeconds > int64(MaxLag/time.Second), "the lag is negative or too long"),
		faultIf(s.Revision == "" || len(s.Revision) > maxName || !isText(s.Revision), "the revision is missing or malformed"))
}

// StoreAddress returns the normal form of a secret store's address: scheme and host in lower case, without the default port of
// the scheme and without a slash at the end. Addresses of stores must be compared in this form, whether they come from a
// configuration, a SecretStore or an event. Text that is not a URL is returned in lower case.
func StoreAddress(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), "/")
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return strings.ToLower(text)
	}
	scheme, host := strings.ToLower(parsed.Scheme), strings.ToLower(parsed.Host)
	switch {
	case parsed.Hostname() == "":
	case scheme == "https":
		host = strings.TrimSuffix(host, ":443")
	case scheme == "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return scheme + "://" + host + strings.TrimRight(parsed.EscapedPath(), "/")
}
