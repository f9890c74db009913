package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	lookInterval = time.Second      // the interval of measurements, for the readiness check and the gauges
	tendInterval = 10 * time.Second // the interval of actions against problems
	// restartLooks is the number of failed looks between restarts of JetStream. The first restart is at the second failed look, because the server
	// does not know the folder of a stream for a moment while the stream is created or deleted.
	restartLooks = 6
	// worthwhile is the inverse of the smallest relative growth of the limit that is applied, because others may write to the volume.
	worthwhile = 16
	// leastFree is the minimum free space, in bytes, for a restart of JetStream, which does not help with less.
	leastFree = 16 << 20
)

// storage looks after the storage of a server, which the server does not do itself: it measures the storage, raises the limit after the volume has
// grown, and restarts JetStream if that has stopped and there is space.
type storage struct {
	server  *server.Server
	options Options
	ours    bool // the limit comes from storeLimit, and not from the configuration file
	logger  *slog.Logger
	seen    atomic.Pointer[look]
	broken  int   // consecutive looks without a working JetStream
	refused int64 // the last limit that the server did not accept
}

// look is one look at the storage.
type look struct {
	used, limit, free int64 // the size of the messages, its maximum, and the free space of the volume, in bytes
	// fault is why JetStream does not work, or nil. After an I/O error, the server disables it or stops writing a stream until a restart.
	fault error
	// behind is the server's lag behind its cluster, or nil. The server catches up by itself, and a restart would only delay it.
	behind error
}

func (s *storage) run(ctx context.Context) {
	looking, tending := time.NewTicker(lookInterval), time.NewTicker(tendInterval)
	defer looking.Stop()
	defer tending.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-looking.C:
			_, _ = s.look() // tend logs failed measurements
		case <-tending.C:
			s.tend(ctx)
		}
	}
}

// tend looks once, and then raises the limit or restarts JetStream if necessary.
func (s *storage) tend(ctx context.Context) {
	now, err := s.look()
	if err != nil {
		s.logger.WarnContext(ctx, "nats storage cannot be measured", "err", err)
		return
	}
	switch {
	case now.fault == nil:
		s.broken = 0
		s.raise(ctx, now)
	case now.free < leastFree:
		s.broken = 0
	default:
		s.broken++
		if s.broken%restartLooks == 2 {
			s.restart(ctx, now)
		}
	}
}

// look measures the storage and keeps the result for Ready and the gauges.
func (s *storage) look() (look, error) {
	var now look
	var err error
	before := s.seen.Load()
	now.fault, now.behind = examine(s.server)
	if now.free, err = s.options.free(s.options.StoreDir); err != nil {
		return now, err
	}
	info, err := s.server.Jsz(nil)
	if err != nil {
		return now, fmt.Errorf("measuring jetstream: %w", err)
	}
	now.used, now.limit = int64(info.Store), info.Config.MaxStore
	if info.Disabled && before != nil {
		now.used, now.limit = before.used, before.limit
	}
	s.seen.Store(&now)
	return now, nil
}

// raise raises the limit if the volume has grown. The server never lowers it.
func (s *storage) raise(ctx context.Context, now look) {
	if !s.ours {
		return
	}
	limit, err := storeLimit(s.options.StoreDir, s.options.free)
	if err != nil || limit < now.limit+now.limit/worthwhile || limit <= s.refused {
		return // the failed measurement was logged
	}
	if err := s.reload(limit); err != nil { //nolint:contextcheck // a handshake logs by itself
		s.refused = limit
		s.logger.ErrorContext(ctx, "nats storage limit not raised, restart the pod to use the larger volume", "limit", limit, "err", err)
		return
	}
	s.logger.InfoContext(ctx, "nats storage limit raised", "limit", limit, "before", now.limit)
}

// restart restarts JetStream, which reads the streams from the volume again.
func (s *storage) restart(ctx context.Context, now look) {
	s.logger.WarnContext(ctx, "restarting jetstream", "err", now.fault, "free", now.free)
	// Unlike turning JetStream off by a reload, a shutdown keeps what the server knows of its cluster on the volume.
	if err := errors.Join(s.server.ShutdownJetStream(), s.reload(now.limit)); err != nil { //nolint:contextcheck // as above
		s.logger.ErrorContext(ctx, "cannot restart jetstream", "err", err)
		return
	}
	if now, err := s.look(); err == nil && now.fault == nil {
		s.broken = 0
	}
}

// reload applies the options of its configuration to the server again, with the given limit. It starts JetStream if that is shut down.
func (s *storage) reload(limit int64) error {
	options, err := s.options.options()
	if err != nil {
		return err
	}
	if s.ours {
		options.JetStreamMaxStore = limit
	}
	if err := s.server.ReloadOptions(options); err != nil {
		return fmt.Errorf("reloading the options of nats: %w", err)
	}
	return nil
}

// Ready is a readiness check. It returns an error while messages cannot be stored, and while the server is behind others of its cluster: until it has
// caught up, the loss of another server may cost the majority.
func (s *storage) Ready() error {
	now := s.seen.Load()
	switch {
	case now == nil:
		return nil
	case now.fault != nil:
		return fmt.Errorf("%w; %d bytes are free", now.fault, now.free)
	case now.behind != nil:
		return now.behind
	case now.used > now.limit:
		return fmt.Errorf("no space for messages: they take %d bytes of %d; enlarge the volume", now.used, now.limit)
	}
	return nil
}

// examine returns the problems that a server reports about its JetStream.
func examine(s *server.Server) (fault, behind error) {
	if !s.JetStreamEnabled() {
		return errors.New("jetstream is disabled after an i/o error"), nil
	}
	clustered := s.JetStreamIsClustered()
	for _, e := range s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		err := fmt.Errorf("jetstream: %s", e.Error)
		switch {
		// The server reports the write errors of streams nowhere else, and only in words.
		case strings.Contains(e.Error, "write error"), !clustered && e.Stream != "":
			fault = err
		case clustered:
			behind = err
		}
	}
	return fault, behind
}

// reserve is the inverse of the part of the volume that is kept free of messages. Deleted messages take space until their file is compacted, which
// writes the rest of the file a second time.
const reserve = 8

// storeLimit returns how many bytes of messages a store may contain: the size of its files plus the free space, less the reserve. It does not depend
// on the stored messages or on restarts, and grows with the volume.
//
// The server's own limit would be three quarters of the free space and the stored data at its start. It would not change when the volume is enlarged.
func storeLimit(dir string, free func(dir string) (int64, error)) (int64, error) {
	left, err := free(dir)
	if err != nil {
		return 0, err
	}
	occupied, err := occupiedBytes(dir)
	if err != nil {
		return 0, err
	}
	room := occupied + left
	return room - room/reserve, nil
}

func occupiedBytes(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				sum += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // The server removes files all the time.
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("reading the size of %s: %w", dir, err)
	}
	return sum, nil
}

// limited returns the server's options with a limit of the store, and whether the limit is ours. It is not if the configuration file has a
// max_file, which takes precedence, or if the volume cannot be measured, so that the server chooses the limit.
func (o Options) limited() (options *server.Options, ours bool, err error) {
	if options, err = o.options(); err != nil || options.JetStreamMaxStore > 0 {
		return options, false, err
	}
	if err := os.MkdirAll(o.StoreDir, 0o700); err != nil {
		return nil, false, fmt.Errorf("embedded nats: %w", err)
	}
	limit, err := storeLimit(o.StoreDir, o.free)
	if err != nil || limit <= 0 {
		return options, false, nil //nolint:nilerr // The server has a limit of its own.
	}
	options.JetStreamMaxStore = limit
	return options, true, nil
}
