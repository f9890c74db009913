package openbao

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// storeTransport is the transport to a store. It uses its certificates as they are in their files.
type storeTransport struct{ *reloaded[http.Transport] }

func newStoreTransport(config *tlsFiles, o *Options) (*storeTransport, error) {
	files := &transportFiles{config: config}
	if config.ClientCertFile != "" {
		// The API client would read the certificate only once.
		var err error
		if files.keys, err = newReloaded[tls.Certificate](keyFiles{config.ClientCertFile, config.ClientKeyFile}, o); err != nil {
			return nil, fmt.Errorf("tls.clientCertFile: %w", err)
		}
	}
	transport, err := newReloaded[http.Transport](files, o)
	return &storeTransport{transport}, err
}

// RoundTrip implements http.RoundTripper.
func (t *storeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current(r.Context()).RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (t *storeTransport) CloseIdleConnections() {
	t.current(context.Background()).CloseIdleConnections()
}

// transportFiles makes the transport with the certificate authority in its file.
type transportFiles struct {
	config *tlsFiles
	keys   *reloaded[tls.Certificate] // nil: no client certificate

	authority []byte
	made      *http.Transport
}

// load returns another transport if the certificate authority changed. Connections that were verified with the previous one are closed when idle.
func (f *transportFiles) load() (*http.Transport, error) {
	var authority []byte
	if f.config.CACertFile != "" {
		var err error
		if authority, err = os.ReadFile(f.config.CACertFile); err != nil {
			return nil, fmt.Errorf("tls.caCertFile: reading: %w", err)
		}
	}
	if f.made != nil && bytes.Equal(authority, f.authority) {
		return f.made, nil
	}
	made := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.config.ServerName},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 2 * concurrency,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
	if f.config.CACertFile != "" {
		made.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !made.TLSClientConfig.RootCAs.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("tls.caCertFile: %s: no certificate in PEM", f.config.CACertFile)
		}
	}
	if f.keys != nil {
		made.TLSClientConfig.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return f.keys.current(request.Context()), nil
		}
	}
	if f.made != nil {
		f.made.CloseIdleConnections()
	}
	f.authority, f.made = authority, made
	return made, nil
}
