package inplace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// maxHeaders and maxBody are the maximum numbers of bytes of a response that are read. Only the status is used.
const maxHeaders, maxBody = 16 << 10, 64 << 10

// post sends one request on its own connection. It does not use http.Client, which would log data that a server sends before the request, follow
// redirects and use the proxies of the environment.
func (c *Client) post(ctx context.Context, span trace.Span, at, path string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	request.Close = true
	request.Header.Set("User-Agent", "keyturn")
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(request.Header))
	connection, err := c.dial(ctx, "tcp", at)
	if err != nil {
		return reported(ctx, err)
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	if err := request.Write(connection); err != nil {
		return reported(ctx, err)
	}
	status, err := answerOf(connection, request)
	if status != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	}
	switch {
	case status != 0 && (status < 200 || status > 299):
		return fmt.Errorf("it answers with the status %d", status)
	case err != nil:
		return reported(ctx, err)
	}
	return nil
}

// answerOf returns the status of the response, or zero if there is none. It waits for the end of the response, because the pod may still be reloading
// before that.
func answerOf(connection io.Reader, request *http.Request) (int, error) {
	limited := &io.LimitedReader{R: connection, N: maxHeaders}
	reader := bufio.NewReader(limited)
	response, err := http.ReadResponse(reader, request)
	for err == nil && response.StatusCode < 200 { // An interim response.
		response, err = http.ReadResponse(reader, request)
	}
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	limited.N = maxBody
	_, err = io.Copy(io.Discard, response.Body)
	if limited.N == 0 {
		err = nil
	}
	return response.StatusCode, err
}

// reported returns the error to report for a failed call. It omits the text of an error about the response, which it may quote and which must not be
// disclosed.
func reported(ctx context.Context, err error) error {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout():
		return errTimeout
	case ctx.Err() != nil:
		return context.Canceled
	case errors.As(err, &op):
		return op
	}
	return errNoAnswer
}
