package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// serverLog forwards the server's log to slog, and keeps its last fatal error.
type serverLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   error
}

var _ server.Logger = (*serverLog)(nil)

func (l *serverLog) log(level slog.Level, format string, v []any) {
	if ctx := context.Background(); l.logger.Enabled(ctx, level) {
		l.logger.Log(ctx, level, "nats-server", "text", fmt.Sprintf(format, v...))
	}
}

// Noticef implements server.Logger.
func (l *serverLog) Noticef(format string, v ...any) { l.log(slog.LevelInfo, format, v) }

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) { l.log(slog.LevelWarn, format, v) }

// Errorf implements server.Logger.
func (l *serverLog) Errorf(format string, v ...any) { l.log(slog.LevelError, format, v) }

// Debugf implements server.Logger.
func (l *serverLog) Debugf(format string, v ...any) { l.log(slog.LevelDebug, format, v) }

// Tracef implements server.Logger. It drops traces, because they contain payloads.
func (l *serverLog) Tracef(string, ...any) {}

// Fatalf implements server.Logger. After the call, the server stops, but the process does not.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.log(slog.LevelError, format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Errorf(format, v...)
}

// fatal returns the server's last fatal error, or nil.
func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
