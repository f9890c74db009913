package openbao

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The limits of the HTTP audit receiver. The store waits for the answer with each of its requests.
const (
	// maxBodyLine is how long a line may be, in bytes. Writes of secrets have shorter ones: see maxLine. What is longer is
	// skipped while it is read, up to maxBody.
	maxBodyLine       = 1 << 20
	maxBody           = 64 << 20
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
	shutdownTimeout   = 5 * time.Second
	// maxBodies is how many bodies are read at once. What comes meanwhile is dropped.
	maxBodies = 64
)

// receiver takes the lines that OpenBao's HTTP audit device posts.
type receiver struct {
	stores  map[string]*store // by name
	bearers *bearers
	keys    *keypair // nil: no TLS
	log     *slog.Logger
	bodies  chan struct{}
}

func newReceiver(o *Options, stores []*store) (*receiver, error) {
	r := &receiver{stores: map[string]*store{}, log: o.Logger, bodies: make(chan struct{}, maxBodies)}
	for _, s := range stores {
		r.stores[s.config.Name] = s
	}
	var err error
	if r.bearers, err = newBearers(o.AuditTokenFile); err != nil {
		return nil, fmt.Errorf("--openbao-audit-token-file: %w", err)
	}
	if o.AuditTLSCertFile != "" {
		if r.keys, err = newKeypair(o.AuditTLSCertFile, o.AuditTLSKeyFile); err != nil {
			return nil, fmt.Errorf("--openbao-audit-tls-cert-file: %w", err)
		}
	}
	return r, nil
}

// serve answers until ctx is done.
func (r *receiver) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           r.handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(r.log.Handler(), slog.LevelDebug),
	}
	if r.keys != nil {
		listener = tls.NewListener(listener, &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.keys.current(), nil },
		})
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(patience); err != nil {
			r.log.WarnContext(ctx, "requests of an audit device are cut off", "err", errors.Join(err, server.Close()))
		}
	})
	err := server.Serve(listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the audit receiver: %w", err)
}

// handler takes POST /v1/audit/<store>, and /v1/audit where there is one store.
func (r *receiver) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audit/{store}", func(w http.ResponseWriter, request *http.Request) {
		r.take(w, request, r.stores[request.PathValue("store")])
	})
	mux.HandleFunc("POST /v1/audit", func(w http.ResponseWriter, request *http.Request) {
		var only *store
		for _, s := range r.stores {
			if len(r.stores) == 1 {
				only = s
			}
		}
		r.take(w, request, only)
	})
	return mux
}

// take answers a request, without waiting for anything but its body. But for a line that is too long, the answer says nothing
// of what became of the lines: the store is not to fail because of us.
func (r *receiver) take(w http.ResponseWriter, request *http.Request, s *store) {
	ctx := request.Context()
	if !r.bearers.allow(request) {
		if s != nil {
			s.refuse(ctx)
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	if s == nil {
		http.Error(w, "no such store: want /v1/audit/<store>", http.StatusNotFound)
		return
	}
	select {
	case r.bodies <- struct{}{}:
		defer func() { <-r.bodies }()
	default:
		s.miss(ctx, dropped)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	missed := false
	rest, err := readLines(http.MaxBytesReader(w, request.Body, maxBody), maxBodyLine,
		func(line []byte) { s.take(ctx, line, true) }, func(head []byte) { missed = s.skip(ctx, head) || missed })
	_, tooLong := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLong && len(rest) > 0:
		missed = s.skip(ctx, rest) || missed
	case tooLong:
	case err != nil:
		// The store hung up, or was too slow.
		s.miss(ctx, malformed)
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	case len(rest) > 0:
		s.take(ctx, rest, true)
	}
	if missed || tooLong {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
