package openbao

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hashicorp/vault/api"
)

// storeTransport is the transport to a store. The certificates are reloaded when their files change.
type storeTransport struct {
	files   *tlsFiles
	keys    *keypair // nil: no client certificate
	current atomic.Pointer[http.Transport]
	loaded  stamp // of the certificate authority
}

// newStoreTransport reads the files.
func newStoreTransport(files *tlsFiles) (*storeTransport, error) {
	t := &storeTransport{files: files}
	if files.ClientCertFile != "" {
		// The API client would read the certificate only once.
		var err error
		if t.keys, err = newKeypair(files.ClientCertFile, files.ClientKeyFile); err != nil {
			return nil, fmt.Errorf("tls.clientCertFile: %w", err)
		}
	}
	return t, t.load()
}

// RoundTrip sends a request over TLS with the certificates that were read last.
func (t *storeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current.Load().RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (t *storeTransport) CloseIdleConnections() { t.current.Load().CloseIdleConnections() }

// refresh reads the files that changed. If they cannot be read, it keeps what it read last.
func (t *storeTransport) refresh() error {
	if t.keys != nil {
		if err := t.keys.refresh(); err != nil {
			return err
		}
	}
	return t.load()
}

// load reads the certificate authority if its file changed. Connections that were verified with the previous one are closed when idle.
func (t *storeTransport) load() error {
	var onDisk stamp
	if t.files.CACertFile != "" {
		var err error
		if onDisk, err = stampOf(t.files.CACertFile); err != nil {
			return fmt.Errorf("tls.caCertFile: %w", err)
		}
	}
	before := t.current.Load()
	if before != nil && onDisk == t.loaded {
		return nil
	}
	made := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 2 * concurrency,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
	settings := &api.Config{HttpClient: &http.Client{Transport: made}}
	if err := settings.ConfigureTLS(&api.TLSConfig{CACert: t.files.CACertFile, TLSServerName: t.files.ServerName}); err != nil {
		return fmt.Errorf("tls.caCertFile: %w", err)
	}
	if t.keys != nil {
		made.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.keys.current(), nil }
	}
	t.loaded = onDisk
	t.current.Store(made)
	if before != nil {
		before.CloseIdleConnections()
	}
	return nil
}
