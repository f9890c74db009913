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
	// maxRetryAfter is the longest Retry-After that is respected if a service requests fewer messages.
	maxRetryAfter = 15 * time.Minute
	// maxOutage is the longest Retry-After that is respected if a service is broken: the cause may be a single message, and the others wait.
	maxOutage = time.Minute
	// maxResponse is the number of bytes of a response that are read, so that the connection can be reused.
	maxResponse = 64 << 10
)

// errRefused is wrapped by the error of a message that the service refused, and would refuse again.
var errRefused = errors.New("refused")

// retryAfterError is the error for a response that says when the service will accept messages again.
type retryAfterError struct {
	after time.Duration
	error
}

type poster struct {
	client *http.Client
	// address and header may contain secrets.
	address *url.URL
	header  http.Header
	now     func() time.Time
	// timeout is sendTimeout, except in tests.
	timeout time.Duration
}

func newPoster(address *url.URL, client *http.Client) *poster {
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"keyturn-actuator"}}
	return &poster{client: client, address: address, header: header, now: time.Now, timeout: sendTimeout}
}

// post sends a message. The error wraps errRefused if the same message would fail again, and is a retryAfterError if the service says when to
// retry. No error quotes the address or the response.
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

func (p *poster) classify(response *http.Response) error {
	status, limit := response.StatusCode, maxOutage
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusTooManyRequests:
		limit = maxRetryAfter
	case status != http.StatusRequestTimeout && status != http.StatusTooEarly && status < 500:
		return fmt.Errorf("posting: %w: the service responded with status %d", errRefused, status)
	}
	err := fmt.Errorf("posting: the service responded with status %d", status)
	if after := p.retryAfter(response.Header.Get("Retry-After")); after > 0 {
		return &retryAfterError{min(after, limit), err}
	}
	return err
}

// retryAfter parses a Retry-After header, which has seconds or a date. For any other text or the past, the result is not positive.
func (p *poster) retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), int(maxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(p.now())
	}
	return 0
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: sendTimeout,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxResponse,
	}
}

// newClient returns a client. It does not follow redirects, which would send the message somewhere else. Nil means newTransport.
func newClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = newTransport()
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
