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

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// sendTimeout is how long a service may take for one message.
	sendTimeout = 10 * time.Second
	// maxRetryAfter bounds for how long a service may ask to be left alone.
	maxRetryAfter = 15 * time.Minute
	// maxAnswer is how much of an answer is read, so that the connection can be used again.
	maxAnswer = 64 << 10
)

// poster posts to one address.
type poster struct {
	client *http.Client
	// address is secret.
	address *url.URL
	// header may be secret, too.
	header http.Header
	now    func() time.Time
}

// post sends a message. An error wraps errRefused where the same message would fail again, and is an events.RetryError where
// the service says when to come back. No error has the address, or anything that the service said.
func (p *poster) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("posting: %w: the address cannot be used", errRefused) // its own error quotes the address
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
	// What is not read in time only costs a connection.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	return p.judge(response)
}

// judge says what the status of an answer means.
func (p *poster) judge(response *http.Response) error {
	status := response.StatusCode
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		err := fmt.Errorf("posting: the service answered with status %d", status)
		if after := p.retryAfter(response.Header.Get("Retry-After")); after > 0 {
			return &events.RetryError{After: after, Err: err}
		}
		return err
	}
	return fmt.Errorf("posting: %w: the service answered with status %d", errRefused, status)
}

// retryAfter reads the header, which has seconds or a date. It is zero where it says nothing.
func (p *poster) retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return min(max(0, time.Duration(min(seconds, int(maxRetryAfter/time.Second)))*time.Second), maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(p.now())), maxRetryAfter)
	}
	return 0
}

// newClient makes the client of all sinks. Redirects are answers like others: they would lead the message somewhere else.
func newClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: sendTimeout,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxAnswer,
		}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
