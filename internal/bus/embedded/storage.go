package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	lookInterval = time.Second      // how often the storage is measured, for the readiness check and the gauges
	tendInterval = 10 * time.Second // how often problems of the storage are acted on
	// restartLooks is the number of failed looks between restarts of JetStream. The first restart is at the second failed look and not at the
	// first, because the folder of a stream that is being created or deleted is unknown to the server for a moment.
	restartLooks = 6
	// worthwhile is the inverse of the smallest relative growth of the limit that is applied: others may write to the volume.
	worthwhile = 16
	mostAlone  = 5 * time.Second // how long a server may know no leader of its cluster, for example during an election
	// leastFree is the minimum of free space, in bytes, for restarting JetStream. With less, a restart does not help.
	leastFree = 16 << 20
)

// storage looks after the storage of a server. It measures the storage, raises the limit when the volume has grown, and restarts JetStream
// when that has stopped and there is space. The server does none of this by itself.
type storage struct {
	server  *server.Server
	options Options
	ours    bool // the limit comes from storeLimit, and not from the configuration file
	logger  *slog.Logger
	seen    atomic.Pointer[look]
	broken  int   // counts the looks in a row at which JetStream did not work
	refused int64 // the last limit that the server did not accept
}

// look is one look at the storage.
type look struct {
	used, limit, free int64     // the size of the messages, its maximum, and what can be written to the volume, in bytes
	alone             time.Time // since when the server has known no leader of its cluster, or zero if it knows one
	condition
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
			_, _ = s.look() // tend logs what cannot be measured
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
	now, before := look{condition: examine(s.server)}, s.seen.Load()
	var err error
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
	switch {
	case info.Meta == nil || info.Meta.Leader != "":
	case before != nil && !before.alone.IsZero():
		now.alone = before.alone
	default:
		now.alone = time.Now()
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
		return // what cannot be measured was logged
	}
	if err := s.reload(limit); err != nil { //nolint:contextcheck // a handshake logs by itself
		s.refused = limit
		s.logger.ErrorContext(ctx, "nats storage limit not raised, restart the actuator to use the larger volume", "limit", limit, "err", err)
		return
	}
	s.logger.InfoContext(ctx, "nats storage limit raised", "limit", limit, "before", now.limit)
}

// restart restarts JetStream, which reads the streams from the volume again.
func (s *storage) restart(ctx context.Context, now look) {
	s.logger.WarnContext(ctx, "restarting jetstream", "err", now.fault, "free", now.free)
	// Unlike turning JetStream off by a reload, a shutdown keeps what the server knows of its cluster on the volume.
	if err := errors.Join(s.server.ShutdownJetStream(), s.reload(now.limit)); err != nil { //nolint:contextcheck // as above
		s.logger.ErrorContext(ctx, "jetstream not restarted", "err", err)
		return
	}
	if now, err := s.look(); err == nil && now.fault == nil {
		s.broken = 0
	}
}

// reload gives the server the options of its configuration again, with the given limit. It starts JetStream if that is shut down.
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

// Ready is a readiness check. It returns an error while messages cannot be stored, and while the server is behind the others of its cluster: until it
// has caught up, the loss of another server may cost the majority.
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

// Alone returns an error if the server has had no contact with most servers of its cluster for some seconds. Clients of this server can
// then neither read nor publish, while clients of other servers may.
func (s *storage) Alone() error {
	now := s.seen.Load()
	if now == nil || now.alone.IsZero() || time.Since(now.alone) < mostAlone {
		return nil
	}
	return errors.New("the embedded nats server has no contact with most servers of its cluster")
}

// condition is what a server says about its JetStream.
type condition struct {
	// fault is why JetStream does not work, or nil. After an I/O error, the server disables it or stops writing a stream until a restart.
	fault error
	// behind says what the server lacks in comparison with its cluster, or is nil. The server catches up by itself. A restart would only delay that.
	behind error
}

func examine(s *server.Server) condition {
	if !s.JetStreamEnabled() {
		return condition{fault: errors.New("jetstream is disabled after an i/o error")}
	}
	var now condition
	clustered := s.JetStreamIsClustered()
	for _, e := range s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		err := fmt.Errorf("jetstream: %s", e.Error)
		switch {
		// The server reports the write errors of streams nowhere else, and only in words.
		case strings.Contains(e.Error, "write error"), !clustered && e.Stream != "":
			now.fault = err
		case clustered:
			now.behind = err
		}
	}
	return now
}
