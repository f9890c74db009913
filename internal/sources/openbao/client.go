package openbao

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/vault/api"

	"github.com/keyturn/keyturn/internal/events"
)

// These limit a request to a store.
const (
	requestTimeout = 30 * time.Second
	scanTimeout    = 2 * time.Minute // of a request for a whole mount
	maxAnswer      = 64 << 20        // bytes of an answer
	maxScan        = 512 << 20       // bytes of an answer with metadata, of which only a part is in memory at a time
	// maxScanned is the maximum number of secrets of one answer in memory, each in about 300 bytes.
	maxScanned = 100_000
)

// client requests metadata from a store. It never requests values.
type client struct {
	requests *api.Client
	session  *session
	now      func() time.Time
	http     *http.Client
	most     int          // maxScanned, except in tests
	ahead    atomic.Int64 // see skew
}

// reply contains the times of a request and its answer.
type reply struct {
	asked, received time.Time // by the watcher's clock
	date            time.Time // the latest possible time of the store's clock when it answered
	warned          bool      // the answer has warnings or errors
}

// answerReader reads the body of an answer, and records in the reply whether it has warnings or errors.
type answerReader func(body io.Reader, got *reply) error

func newClient(c *storeConfig, transport http.RoundTripper, now func() time.Time, log *slog.Logger) (*client, error) {
	settings := &api.Config{
		Address: c.servers[0],
		HttpClient: &http.Client{
			Transport: transport,
			// The API client itself follows one redirect, unless that would drop TLS.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		MaxRetries: 0, // The callers retry.
	}
	requests, err := api.NewClient(settings)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	// The API client takes both from the environment even if the configuration sets them.
	requests.ClearToken()
	requests.ClearNamespace()
	if c.Namespace != "" {
		requests.SetNamespace(c.Namespace)
	}
	keep := &session{auth: c.Auth, requests: requests, now: now, log: log}
	return &client{requests: requests, now: now, http: settings.HttpClient, most: maxScanned, session: keep}, nil
}

// get requests a path and decodes the "data" of the answer into out. It returns errNotThere if the path does not exist.
func (c *client) get(ctx context.Context, namespace, path string, query url.Values, out any) (reply, error) {
	return c.request(ctx, namespace, path, query, decodeInto(out))
}

// list returns the names in a folder that come after the given one: see pageAfter. Names of folders end in a slash. A missing folder is empty.
func (c *client) list(ctx context.Context, namespace, path, after string) ([]string, error) {
	var listed struct {
		Keys []string `json:"keys"`
	}
	_, err := c.get(ctx, namespace, path, pageAfter(after), &listed)
	if errors.Is(err, errNotThere) {
		err = nil
	}
	return listed.Keys, err
}

// details requests the metadata of the secrets in a folder and, with the parameter scan, of those below it. Names of folders end in a slash. It
// returns errNotThere if there are none, and errTooLong if there are more than maxScanned.
func (c *client) details(ctx context.Context, in engineMount, folder string, query url.Values) ([]scannedSecret, reply, error) {
	var secrets []scannedSecret
	got, err := c.request(ctx, in.namespace, in.path+"/detailed-metadata/"+folder, query, func(body io.Reader, got *reply) error {
		var err error
		secrets, err = readKeyInfo(io.LimitReader(body, maxScan), got.date, c.most)
		return err
	})
	return secrets, got, err
}

// decodeInto returns an answerReader that decodes the "data" into out.
func decodeInto(out any) answerReader {
	return func(from io.Reader, got *reply) error {
		body := struct {
			Data     any      `json:"data"`
			Warnings []string `json:"warnings"`
			Errors   []string `json:"errors"`
		}{Data: out}
		err := json.NewDecoder(io.LimitReader(from, maxAnswer)).Decode(&body)
		got.warned = len(body.Warnings)+len(body.Errors) > 0
		return err
	}
}

// request makes a request, and repeats it with another token if the store refuses the first one.
func (c *client) request(ctx context.Context, namespace, path string, query url.Values, read answerReader) (reply, error) {
	if !isPath(strings.TrimSuffix(path, "/")) {
		// The API client would normalize it to another path.
		return reply{}, errPath
	}
	for again := true; ; again = false {
		token, err := c.session.current(ctx)
		if err != nil {
			return reply{}, err
		}
		got, err := c.requestWith(ctx, token, namespace, path, query, read)
		if !again || code(err) != http.StatusForbidden || !c.session.replaceRefused(ctx, token) {
			return got, err
		}
	}
}

func (c *client) requestWith(ctx context.Context, token, namespace, path string, query url.Values, read answerReader) (reply, error) {
	timeout := requestTimeout
	if query.Has("scan") {
		timeout = scanTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if namespace == events.RootNamespace {
		namespace = ""
	}
	authorized := c.requests.WithNamespace(namespace)
	authorized.SetToken(token)
	got := reply{asked: c.now()}
	response, err := authorized.Logical().ReadRawWithDataWithContext(ctx, path, query)
	got.received = c.now()
	if response != nil {
		defer response.Body.Close()
	}
	if err != nil && (response == nil || response.StatusCode != http.StatusNotFound) {
		return got, fmt.Errorf("requesting %s: %w", path, plain(err))
	}
	got.date = got.received
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		// The header has no fractions of a second.
		got.date = date.Add(time.Second)
		c.ahead.Store(int64(date.Sub(got.received)))
	}
	if response.StatusCode == http.StatusNotFound {
		read = decodeInto(nil)
	}
	err = read(response.Body, &got)
	switch {
	case response.StatusCode == http.StatusNotFound:
		return got, errNotThere
	case err != nil && ctx.Err() != nil:
		return got, fmt.Errorf("requesting %s: %w", path, ctx.Err())
	case errors.Is(err, errTooLong):
		return got, fmt.Errorf("requesting %s: %w", path, errTooLong)
	case err != nil:
		// The decoder's error may quote the answer.
		return got, fmt.Errorf("requesting %s: %w", path, errAnswer)
	}
	return got, nil
}

// skew returns how far the store's clock is ahead of the watcher's at least, according to the last answer.
func (c *client) skew() time.Duration { return time.Duration(c.ahead.Load()) }

func (c *client) close() { c.http.CloseIdleConnections() }
