package openbao

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/telemetry"
)

// These limit the HTTP audit receiver. Each request to the store waits for the receiver's answer.
const (
	minBearer    = 16               // bytes of a token
	maxBody      = 64 << 20         // bytes of a body, both before and after decompression
	writeTimeout = 10 * time.Second // of a request, from its header to the end of its answer
	// drainTimeout is the time for requests in flight at the end, and then for the looks at their paths.
	drainTimeout = 5 * time.Second
	sendAgain    = "no room: send it again"
)

// httpReceiver accepts the lines that OpenBao's HTTP audit device or a log shipper posts.
type httpReceiver struct {
	intakes map[string]*intake // by the name of the store
	bearers *bearers
	keys    *reloaded[tls.Certificate] // nil without TLS
	log     *slog.Logger
}

// newHTTPReceiver returns a receiver with files. An error begins with the name of the file's field.
func newHTTPReceiver(files auditConfig, o *Options, intakes map[string]*intake) (*httpReceiver, error) {
	r := &httpReceiver{intakes: intakes, log: o.Logger}
	if files.TokenFile == "" {
		return nil, errors.New("tokenFile: is empty, want the path of a file with the token that the audit device sends; " +
			"create one with: openssl rand -hex 32")
	}
	var err error
	if r.bearers, err = newBearers(files.TokenFile, o, slices.Sorted(maps.Keys(intakes))); err != nil {
		return nil, fmt.Errorf("tokenFile: %w", err)
	}
	if files.TLSCertFile != "" {
		if r.keys, err = newReloaded[tls.Certificate](keyFiles{files.TLSCertFile, files.TLSKeyFile}, o); err != nil {
			return nil, fmt.Errorf("tlsCertFile: %w", err)
		}
	}
	return r, nil
}

// serve answers requests until ctx is done.
func (r *httpReceiver) serve(ctx context.Context, listener net.Listener) error {
	o := telemetry.Options{
		Handler: r.handler(), Logger: r.log, ErrorLevel: slog.LevelDebug, WriteTimeout: writeTimeout, Drain: drainTimeout,
	}
	if r.keys != nil {
		o.TLS = &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.keys.current(ctx), nil },
		}
	}
	err := telemetry.Serve(ctx, listener, o)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		r.log.WarnContext(ctx, "audit requests cut off", "err", err)
		return nil
	case err != nil:
		return fmt.Errorf("audit receiver: %w", err)
	}
	return nil
}

// handler handles POST /v1/audit/<store>. It keeps only authenticated connections open: idle ones cost memory for minutes, and anyone may open many.
func (r *httpReceiver) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audit/{store}", func(w http.ResponseWriter, request *http.Request) {
		r.receive(w, request, r.intakes[request.PathValue("store")])
	})
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Connection", "close")
		mux.ServeHTTP(w, request)
	})
}

// receive answers a request. It waits only for the body. The answer to an audit device does not reveal how its line was handled, unless too many
// bodies are being read, because the store must not fail because of the watcher.
func (r *httpReceiver) receive(w http.ResponseWriter, request *http.Request, to *intake) {
	ctx := request.Context()
	if !r.bearers.allow(request, to) {
		if to != nil {
			to.metrics.countLine(ctx, to.store, refused)
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	w.Header().Del("Connection")
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
	full, tooLong := false, false
	body, err := decompressed(w, request)
	if err == nil {
		full, tooLong, err = to.read(ctx, body)
	}
	if err != nil {
		to.miss(ctx, malformed)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		http.Error(w, "unsupported encoding: want none or gzip", http.StatusUnsupportedMediaType)
	case err != nil: // The store closed the connection or was too slow.
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

// bearers contains the tokens that authenticate senders of audit lines.
type bearers struct{ *reloaded[[]bearer] }

// bearer is a token of one store. Only its hash is kept.
type bearer struct {
	hash  [sha256.Size]byte
	store string
}

func newBearers(path string, o *Options, stores []string) (*bearers, error) {
	tokens, err := newReloaded[[]bearer](tokenFile{path, stores}, o)
	return &bearers{tokens}, err
}

func (b *bearers) has(store string) bool {
	return slices.ContainsFunc(*b.current(context.Background()), func(one bearer) bool { return one.store == store })
}

// allow reports whether the request has a token of the store, or of any store if to is nil. Its duration reveals nothing about the tokens.
func (b *bearers) allow(r *http.Request, to *intake) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sent := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for _, one := range *b.current(r.Context()) {
		same := subtle.ConstantTimeCompare(sent[:], one.hash[:])
		if to == nil || one.store == to.store {
			found |= same
		}
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}

// tokenFile is a file of tokens. Each line has the name of a store and a token; the name is optional if there is only one store.
type tokenFile struct {
	path   string
	stores []string
}

func (f tokenFile) load() (*[]bearer, error) {
	content, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	var tokens []bearer
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		token, err := f.parse(fields)
		if err != nil {
			return nil, fmt.Errorf("%s: token %d %w", f.path, len(tokens)+1, err)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: has no token; create one with: openssl rand -hex 32", f.path)
	}
	return &tokens, nil
}

// parse reads the fields of a line. Errors quote no field, because any may be a token.
func (f tokenFile) parse(fields []string) (bearer, error) {
	if len(fields) == 1 && len(f.stores) == 1 {
		fields = []string{f.stores[0], fields[0]}
	}
	token := fields[len(fields)-1]
	switch {
	case len(token) < minBearer:
		return bearer{}, fmt.Errorf("is too short, want %d characters or more; create one with: openssl rand -hex 32", minBearer)
	case len(fields) != 2 || !slices.Contains(f.stores, fields[0]):
		return bearer{}, errors.New("is not for one of the stores, want a line for each: <store> <token>")
	}
	return bearer{hash: sha256.Sum256([]byte(token)), store: fields[0]}, nil
}
