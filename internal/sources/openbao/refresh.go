package openbao

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// refreshInterval is how often files are checked for changes.
const refreshInterval = 5 * time.Second

// refresher reloads its files if they have changed. If that fails, it keeps what it read last.
type refresher interface{ refresh() error }

// refreshing calls the refreshers at each interval until ctx is done.
func refreshing(ctx context.Context, log *slog.Logger, interval time.Duration, refreshers []refresher) {
	failed := make([]string, len(refreshers))
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for i, r := range refreshers {
			text := ""
			if err := r.refresh(); err != nil {
				text = err.Error()
				if text != failed[i] {
					log.ErrorContext(ctx, "changed file cannot be read, keeping its previous content", "err", err)
				}
			}
			failed[i] = text
		}
	}
}

// stamp identifies the versions of at most two files.
type stamp [2]struct {
	modified int64
	size     int64
}

func stampOf(files ...string) (stamp, error) {
	var s stamp
	for i, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return s, fmt.Errorf("reading: %w", err)
		}
		s[i].modified, s[i].size = info.ModTime().UnixNano(), info.Size()
	}
	return s, nil
}

// reloaded is what at most two files hold. It is read again when they change.
type reloaded[T any] struct {
	files   []string
	read    func() (*T, error)
	loaded  stamp
	content atomic.Pointer[T]
}

// current returns what was read last.
func (r *reloaded[T]) current() *T { return r.content.Load() }

// refresh reads the files if they changed. If they cannot be read, it keeps what it read last.
func (r *reloaded[T]) refresh() error {
	onDisk, err := stampOf(r.files...)
	if err != nil || onDisk == r.loaded && r.current() != nil {
		return err
	}
	content, err := r.read()
	if err != nil {
		return err
	}
	r.loaded = onDisk
	r.content.Store(content)
	return nil
}

// keypair is a certificate and its key.
type keypair = reloaded[tls.Certificate]

// newKeypair reads the files.
func newKeypair(certFile, keyFile string) (*keypair, error) {
	k := &keypair{files: []string{certFile, keyFile}, read: func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("reading: %w", err)
		}
		return &pair, nil
	}}
	return k, k.refresh()
}
