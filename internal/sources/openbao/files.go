package openbao

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const recheck = 5 * time.Second // how long the content of files is used before the next read

type loader[T any] interface{ load() (*T, error) }

// reloaded is the content of files, which are read again on use, at most once in recheck. If that fails, the previous content stays. It is safe for
// concurrent use.
type reloaded[T any] struct {
	files loader[T]
	log   *slog.Logger
	now   func() time.Time

	mu      sync.Mutex
	content *T
	checked time.Time
	failed  string // the last error, or empty
}

func newReloaded[T any](files loader[T], o *Options) (*reloaded[T], error) {
	content, err := files.load()
	if err != nil {
		return nil, err
	}
	return &reloaded[T]{files: files, log: o.Logger, now: o.Now, content: content, checked: o.Now()}, nil
}

func (r *reloaded[T]) current(ctx context.Context) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if now.Sub(r.checked) < recheck {
		return r.content
	}
	r.checked = now
	content, err := r.files.load()
	switch {
	case err == nil:
		r.content, r.failed = content, ""
	case err.Error() != r.failed:
		r.failed = err.Error()
		r.log.ErrorContext(ctx, "changed file cannot be read, keeping its previous content", "err", err)
	}
	return r.content
}

// keyFiles are the files of a certificate and of its key.
type keyFiles struct{ cert, key string }

func (f keyFiles) load() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	return &pair, nil
}

// storeTransport is the transport to a store. It trusts the certificate authority from the file.
type storeTransport struct{ *reloaded[http.Transport] }

func (t *storeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current(r.Context()).RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (t *storeTransport) CloseIdleConnections() {
	t.current(context.Background()).CloseIdleConnections()
}

// transportFiles is the transport's configuration, including the file of the certificate authority.
type transportFiles struct {
	config    *tlsConfig
	authority []byte
	made      *http.Transport
}

// load returns a new transport if the certificate authority has changed. Connections that were verified with the old one are closed once idle.
func (f *transportFiles) load() (*http.Transport, error) {
	made := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.config.ServerName},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 2 * concurrency,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
	var authority []byte
	if path := f.config.CACertFile; path != "" {
		var err error
		if authority, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("tls.caCertFile: reading: %w", err)
		}
		made.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !made.TLSClientConfig.RootCAs.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("tls.caCertFile: %s: no certificate in PEM", path)
		}
	}
	if f.made != nil && bytes.Equal(authority, f.authority) {
		return f.made, nil
	}
	if f.made != nil {
		f.made.CloseIdleConnections()
	}
	f.authority, f.made = authority, made
	return made, nil
}
