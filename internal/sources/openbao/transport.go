package openbao

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/vault/api"
)

// newTransport returns the transport to a store, and the client certificate in it, which is nil if there is none.
func newTransport(files *tlsFiles) (*http.Transport, *keypair, error) {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 2 * concurrency,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
	settings := &api.Config{HttpClient: &http.Client{Transport: transport}}
	if err := settings.ConfigureTLS(&api.TLSConfig{CACert: files.CACertFile, TLSServerName: files.ServerName}); err != nil {
		return nil, nil, fmt.Errorf("tls.caCertFile: %w", err)
	}
	if files.ClientCertFile == "" {
		return transport, nil, nil
	}
	// The API client would read the certificate only once.
	keys, err := newKeypair(files.ClientCertFile, files.ClientKeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("tls.clientCertFile: %w", err)
	}
	transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return keys.current(), nil }
	return transport, keys, nil
}
