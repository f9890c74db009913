package openbao

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// recheck is how long the content of files is used before they are read again.
const recheck = 5 * time.Second

// loader reads files.
type loader[T any] interface{ load() (*T, error) }

// reloaded is the content of files. It reads them again when it is used, at most every recheck. If that fails, the previous content stays in use. It
// is safe for concurrent use.
type reloaded[T any] struct {
	files loader[T]
	log   *slog.Logger
	now   func() time.Time

	mu      sync.Mutex
	content *T
	checked time.Time
	failed  string // the last error, or empty
}

// newReloaded reads the files.
func newReloaded[T any](files loader[T], o *Options) (*reloaded[T], error) {
	content, err := files.load()
	if err != nil {
		return nil, err
	}
	return &reloaded[T]{files: files, log: o.Logger, now: o.Now, content: content, checked: o.Now()}, nil
}

// current returns the content.
func (r *reloaded[T]) current(ctx context.Context) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if now.Sub(r.checked) < recheck {
		return r.content
	}
	r.checked = now
	content, err := r.files.load()
	switch {
	case err == nil:
		r.content, r.failed = content, ""
	case err.Error() != r.failed:
		r.failed = err.Error()
		r.log.ErrorContext(ctx, "changed file cannot be read, keeping its previous content", "err", err)
	}
	return r.content
}

// keyFiles are the files of a certificate and of its key.
type keyFiles struct{ cert, key string }

func (f keyFiles) load() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	return &pair, nil
}
