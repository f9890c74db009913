package openbao

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/vault/api"
)

// storeTransport is the transport to a store. The certificates are reloaded when their files change.
type storeTransport struct {
	reloaded[http.Transport]
	config *tlsFiles
	keys   *keypair // nil: no client certificate
}

// newStoreTransport reads the files.
func newStoreTransport(config *tlsFiles) (*storeTransport, error) {
	t := &storeTransport{config: config}
	t.read = t.connect
	if config.CACertFile != "" {
		t.files = []string{config.CACertFile}
	}
	if config.ClientCertFile != "" {
		// The API client would read the certificate only once.
		var err error
		if t.keys, err = newKeypair(config.ClientCertFile, config.ClientKeyFile); err != nil {
			return nil, fmt.Errorf("tls.clientCertFile: %w", err)
		}
	}
	return t, t.load()
}

// RoundTrip sends a request over TLS with the certificates that were read last.
func (t *storeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current().RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (t *storeTransport) CloseIdleConnections() { t.current().CloseIdleConnections() }

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
	before := t.current()
	if err := t.reloaded.refresh(); err != nil {
		return fmt.Errorf("tls.caCertFile: %w", err)
	}
	if before != nil && before != t.current() {
		before.CloseIdleConnections()
	}
	return nil
}

// connect returns a transport with the certificate authority.
func (t *storeTransport) connect() (*http.Transport, error) {
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
	if err := settings.ConfigureTLS(&api.TLSConfig{CACert: t.config.CACertFile, TLSServerName: t.config.ServerName}); err != nil {
		return nil, err
	}
	if t.keys != nil {
		made.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.keys.current(), nil }
	}
	return made, nil
}
