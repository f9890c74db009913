package openbao

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/httpserver"
)

// The limits of the HTTP audit receiver. Each request to the store waits for the receiver's answer.
const (
	// maxBody is the maximum length of a body, in bytes, both before and after decompression.
	maxBody = 64 << 20
	// writeTimeout is how long a request may take from its header to the end of its answer.
	writeTimeout = 10 * time.Second
	// drainTimeout is how long requests in flight may take once the receiver shuts down, and then the looks at the paths that they named.
	drainTimeout = 5 * time.Second
)

// sendAgain is the answer about a body that was not taken.
const sendAgain = "no room: send it again"

// httpReceiver accepts the lines that OpenBao's HTTP audit device or a log shipper posts.
type httpReceiver struct {
	intakes map[string]*intake // by the name of the store
	bearers *bearers
	keys    *reloaded[tls.Certificate] // nil without TLS
	log     *slog.Logger
}

func newHTTPReceiver(o *Options, intakes map[string]*intake) (*httpReceiver, error) {
	r := &httpReceiver{intakes: intakes, log: o.Logger}
	var err error
	if r.bearers, err = newBearers(o, slices.Sorted(maps.Keys(intakes))); err != nil {
		return nil, fmt.Errorf("--openbao-audit-token-file: %w", err)
	}
	if o.AuditTLSCertFile != "" {
		if r.keys, err = newReloaded[tls.Certificate](keyFiles{o.AuditTLSCertFile, o.AuditTLSKeyFile}, o); err != nil {
			return nil, fmt.Errorf("--openbao-audit-tls-cert-file: %w", err)
		}
	}
	return r, nil
}

// serve answers requests until ctx is done.
func (r *httpReceiver) serve(ctx context.Context, listener net.Listener) error {
	if address := listener.Addr(); r.keys == nil && !isLoopback(address) {
		r.log.WarnContext(ctx, "audit receiver has no TLS: others on the network can read its tokens", "address", address.String())
	}
	o := httpserver.Options{
		Handler: r.handler(), Logger: r.log, ErrorLevel: slog.LevelDebug, WriteTimeout: writeTimeout, Drain: drainTimeout,
	}
	if r.keys != nil {
		o.TLS = &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				return r.keys.current(hello.Context()), nil
			},
		}
	}
	err := httpserver.Serve(ctx, listener, o)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		r.log.WarnContext(ctx, "audit requests cut off", "err", err)
		return nil
	case err != nil:
		return fmt.Errorf("audit receiver: %w", err)
	}
	return nil
}

// isLoopback reports whether only this host can connect to an address.
func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// connection is the header that ends a connection with the response. Only one that has shown a token is kept: idle ones cost memory for minutes, and
// anyone may open many.
const connection = "Connection"

// handler handles POST /v1/audit/<store>.
func (r *httpReceiver) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audit/{store}", func(w http.ResponseWriter, request *http.Request) {
		r.receive(w, request, r.intakes[request.PathValue("store")])
	})
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set(connection, "close")
		mux.ServeHTTP(w, request)
	})
}

// receive answers a request. It waits only for the body. The answer to an audit device does not reveal how its line was handled, unless too many bodies
// are being read: the store must not fail because of the watcher.
func (r *httpReceiver) receive(w http.ResponseWriter, request *http.Request, to *intake) {
	ctx, store := request.Context(), ""
	if to != nil {
		store = to.store
	}
	if !r.bearers.allow(request, store) {
		if to != nil {
			to.metrics.countLine(ctx, to.store, refused)
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	w.Header().Del(connection)
	if to == nil {
		http.Error(w, "no such store: want /v1/audit/<store>", http.StatusNotFound)
		return
	}
	select {
	case to.bodies <- struct{}{}:
		defer func() { <-to.bodies }()
	default:
		to.miss(ctx, dropped)
		http.Error(w, sendAgain, http.StatusServiceUnavailable)
		return
	}
	body, err := decompressed(w, request)
	if errors.Is(err, errors.ErrUnsupported) {
		to.miss(ctx, malformed)
		http.Error(w, "unsupported encoding: want none or gzip", http.StatusUnsupportedMediaType)
		return
	}
	full, tooLong := false, false
	if err == nil {
		full, tooLong, err = to.read(ctx, body)
	}
	switch {
	case err != nil:
		// The store hung up or was too slow.
		to.miss(ctx, malformed)
		http.Error(w, "cannot read the body", http.StatusBadRequest)
	case full:
		http.Error(w, sendAgain, http.StatusServiceUnavailable)
	case tooLong:
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// decompressed returns the body of a request, which log shippers may compress. It returns errors.ErrUnsupported for an encoding other than gzip.
func decompressed(w http.ResponseWriter, request *http.Request) (io.Reader, error) {
	body := http.MaxBytesReader(w, request.Body, maxBody)
	switch request.Header.Get("Content-Encoding") {
	case "", "identity":
		return body, nil
	case "gzip":
		content, err := gzip.NewReader(body)
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		return http.MaxBytesReader(w, content, maxBody), nil
	}
	return nil, errors.ErrUnsupported
}
