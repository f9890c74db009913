package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of the HTTP servers. Who asks is a kubelet or a scraper: requests have no body and answers are quick.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// Server is an HTTP server that is listening. Whoever started it stops it.
type Server struct {
	// Addr is the host:port it listens on, with the real port where port 0 was asked for. Empty means it is off.
	Addr string

	http *http.Server
	done chan struct{} // closed when the goroutine that serves has ended
}

// Serve listens on addr and answers with handler until Stop. The address that was bound is logged as "addr". An error
// means that addr cannot be listened on. An empty addr is no error: the Server is off. ctx bounds the start only.
func Serve(ctx context.Context, logger *slog.Logger, addr string, handler http.Handler) (*Server, error) {
	if addr == "" {
		return &Server{}, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s := &Server{
		Addr: listener.Addr().String(),
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: readHeaderTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		},
		done: make(chan struct{}),
	}
	logger.InfoContext(ctx, "listening", "addr", s.Addr)
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.ErrorContext(ctx, "server ended", "addr", s.Addr, "err", err)
		}
	}()
	return s, nil
}

// Stop stops listening, waits for the requests in flight until ctx ends and then cuts them off, which is its error.
func (s *Server) Stop(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	return err
}
