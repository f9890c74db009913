package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// sendTimeout bounds one request.
	sendTimeout = 10 * time.Second
	// maxRetryAfter is the longest Retry-After that is respected if a service wants fewer messages.
	maxRetryAfter = 15 * time.Minute
	// maxOutage is the longest Retry-After that is respected if a service is broken. The reason may be a single message, and
	// waiting delays the others.
	maxOutage = time.Minute
	// maxResponse is how much of a response is read, so that the connection can be reused.
	maxResponse = 64 << 10
)

// poster posts to one address.
type poster struct {
	client *http.Client
	// address is a secret.
	address *url.URL
	// header may contain secrets.
	header http.Header
	now    func() time.Time
	// timeout is sendTimeout, except in tests.
	timeout time.Duration
}

// post sends a message. The error wraps errRefused if the same message would fail again, and a retryAfterError if the service
// says when to retry. No error quotes the address or the response.
func (p *poster) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("posting: %w: the address cannot be used", errRefused) // url.Error quotes the address
	}
	request.Header = p.header.Clone()
	response, err := p.client.Do(request)
	if err != nil {
		if quoting, ok := errors.AsType[*url.Error](err); ok {
			err = quoting.Err
		}
		return fmt.Errorf("posting: %w", err)
	}
	defer response.Body.Close()
	// If reading the rest fails, the connection cannot be reused, but nothing else is lost.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxResponse))
	return p.classify(response)
}

// classify returns the error for the status of a response.
func (p *poster) classify(response *http.Response) error {
	status := response.StatusCode
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		err := fmt.Errorf("posting: the service responded with status %d", status)
		limit := maxOutage
		if status == http.StatusTooManyRequests {
			limit = maxRetryAfter
		}
		if after := p.retryAfter(response.Header.Get("Retry-After")); after > 0 {
			return &retryAfterError{after: min(after, limit), err: err}
		}
		return err
	}
	return fmt.Errorf("posting: %w: the service responded with status %d", errRefused, status)
}

// retryAfter parses a Retry-After header, which has seconds or a date. It returns zero for any other text.
func (p *poster) retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return min(max(0, time.Duration(min(seconds, int(maxRetryAfter/time.Second)))*time.Second), maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(p.now())), maxRetryAfter)
	}
	return 0
}

// newTransport returns a transport that uses the proxies of the environment.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: sendTimeout,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxResponse,
	}
}

// newClient returns a client. It does not follow redirects, which would send the message somewhere else.
func newClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = newTransport()
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
