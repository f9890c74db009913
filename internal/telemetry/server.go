package telemetry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// These limit every server. The clients are kubelets, scrapers and the audit devices of secret stores, with small requests and quick responses.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// Options configure a server. Handler and Logger are required.
type Options struct {
	Handler http.Handler
	// TLS is nil for plain HTTP.
	TLS *tls.Config
	// Logger and ErrorLevel are for errors of single connections, such as a TLS handshake that failed. The zero level is info.
	Logger     *slog.Logger
	ErrorLevel slog.Level
	// WriteTimeout is how long a response may take, from the end of the request's header. Default 30s.
	WriteTimeout time.Duration
	// Drain is how long in-flight requests may take at shutdown. 0 cuts them off at once.
	Drain time.Duration
}

// Serve serves requests until ctx is done, then waits for in-flight requests and closes the listener. It returns nil after a clean
// shutdown. An error that wraps context.DeadlineExceeded means that requests were cut off after Drain; any other error means that the
// server failed.
func Serve(ctx context.Context, listener net.Listener, o Options) error {
	if o.TLS != nil {
		listener = tls.NewListener(listener, o.TLS)
	}
	server := &http.Server{
		Handler:           o.Handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      cmp.Or(o.WriteTimeout, writeTimeout),
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), o.ErrorLevel),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- shutDown(context.WithoutCancel(ctx), server, o.Drain) })
	err := server.Serve(listener)
	if !stop() {
		if cut := <-stopped; errors.Is(err, http.ErrServerClosed) {
			return cut
		}
	}
	return fmt.Errorf("serving http at %s: %w", listener.Addr(), err)
}

// shutDown shuts the server down. It closes connections whose requests take longer than drain.
func shutDown(ctx context.Context, server *http.Server, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("requests were cut off: %w", errors.Join(err, server.Close()))
	}
	return nil
}
