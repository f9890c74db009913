package openbao

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"

	"github.com/keyturn/keyturn/internal/events"
)

// The limits of a request to a store.
const (
	requestTimeout = 30 * time.Second
	// scanTimeout is for an answer about a whole mount.
	scanTimeout = 2 * time.Minute
	// maxAnswer is how long an answer may be, in bytes.
	maxAnswer = 256 << 20
	// concurrency is how many requests are made at once to a store, for each of what asks: the poller and the reader.
	concurrency = 4
)

// client asks a store for metadata. It never asks for values.
type client struct {
	api     *api.Client
	session *session
	now     func() time.Time
	http    *http.Client
	keys    *keypair // the client's certificate, nil where it has none
}

// newClient makes a client. It reads the certificates, but connects to nothing.
func newClient(s *storeConfig, transport http.RoundTripper, now func() time.Time, log *slog.Logger) (*client, error) {
	keys, secure, err := s.TLS.client()
	if err != nil {
		return nil, err
	}
	if transport == nil {
		transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:     secure,
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 2 * concurrency,
			IdleConnTimeout:     90 * time.Second,
			ForceAttemptHTTP2:   true,
		}
	}
	config := &api.Config{
		Address: s.servers[0],
		HttpClient: &http.Client{
			Transport: transport,
			// The client follows one redirect by itself, and none to a connection without TLS.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		// Who asks tries again by itself.
		MaxRetries: 0,
	}
	store, err := api.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	// The client takes these from the environment, whatever the configuration says.
	store.ClearToken()
	store.ClearNamespace()
	if s.Namespace != "" {
		store.SetNamespace(s.Namespace)
	}
	return &client{
		api: store, now: now, http: config.HttpClient, keys: keys,
		session: &session{auth: s.Auth, store: store, log: log, now: now},
	}, nil
}

// client is the TLS configuration of connections to the store, and the client's certificate in it.
func (c *tlsConfig) client() (keys *keypair, secure *tls.Config, err error) {
	secure = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CACertFile != "" {
		content, err := os.ReadFile(c.CACertFile)
		if err != nil {
			return nil, nil, fmt.Errorf("tls.caCertFile: reading: %w", err)
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(content) {
			return nil, nil, fmt.Errorf("tls.caCertFile: %s has no certificate in PEM", c.CACertFile)
		}
	}
	if c.ClientCertFile != "" {
		if keys, err = newKeypair(c.ClientCertFile, c.ClientKeyFile); err != nil {
			return nil, nil, fmt.Errorf("tls.clientCertFile: %w", err)
		}
		secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return keys.current(), nil }
	}
	return keys, secure, nil
}

// answer tells when and how something was answered.
type answer struct {
	asked, received time.Time // by our clock
	date            time.Time // the latest that the store's clock can have been when it answered
	warned          bool      // the answer says more than that there is nothing
}

// get asks for what is at the path, and decodes "data" of the answer into out. It is errNotThere where there is nothing.
func (c *client) get(ctx context.Context, namespace, path string, query url.Values, out any) (answer, error) {
	if !isPath(strings.TrimSuffix(path, "/")) {
		// The client would make another path of it.
		return answer{}, errPath
	}
	token, err := c.session.current(ctx)
	if err != nil {
		return answer{}, err
	}
	got, err := c.getWith(ctx, token, namespace, path, query, out)
	if code(err) == http.StatusForbidden && c.session.refused(ctx, token) {
		if token, err = c.session.current(ctx); err != nil {
			return answer{}, err
		}
		return c.getWith(ctx, token, namespace, path, query, out)
	}
	return got, err
}

func (c *client) getWith(ctx context.Context, token, namespace, path string, query url.Values, out any) (answer, error) {
	timeout := requestTimeout
	if query.Has("scan") {
		timeout = scanTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	store := c.api.WithNamespace(header(namespace))
	store.SetToken(token)
	got := answer{asked: c.now()}
	response, err := store.Logical().ReadRawWithDataWithContext(ctx, path, query)
	got.received = c.now()
	if response != nil {
		defer response.Body.Close()
	}
	if err != nil && (response == nil || response.StatusCode != http.StatusNotFound) {
		return got, fmt.Errorf("asking for %s: %w", path, plain(err))
	}
	got.date = got.received
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		// The header has no fractions of a second.
		got.date = date.Add(time.Second)
	}
	body := struct {
		Data     any      `json:"data"`
		Warnings []string `json:"warnings"`
		Errors   []string `json:"errors"`
	}{Data: out}
	err = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&body)
	got.warned = len(body.Warnings)+len(body.Errors) > 0
	switch {
	case response.StatusCode == http.StatusNotFound:
		return got, errNotThere
	case err != nil:
		// The text of the decoder's error may quote the answer.
		return got, fmt.Errorf("asking for %s: %w", path, errAnswer)
	}
	return got, nil
}

// list gives the names in a folder, with a slash at the end where the name is a folder too. A folder that is not there is empty.
func (c *client) list(ctx context.Context, namespace, path string) ([]string, answer, error) {
	var listed struct {
		Keys []string `json:"keys"`
	}
	got, err := c.get(ctx, namespace, path, url.Values{"list": {"true"}}, &listed)
	if errors.Is(err, errNotThere) {
		err = nil
	}
	return listed.Keys, got, err
}

// close ends the connections that are idle.
func (c *client) close() { c.http.CloseIdleConnections() }

// header is a namespace as requests have it.
func header(namespace string) string {
	if namespace == events.RootNamespace {
		return ""
	}
	return namespace
}
