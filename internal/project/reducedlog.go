package project

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// reducedLog returns a log for the reflectors. They log complete errors of the API server, and the error of a conversion webhook may contain a value.
func reducedLog(log *slog.Logger) logr.Logger {
	return logr.FromSlogHandler(reducing{log.With("component", "client-go").Handler()})
}

// reducing is a handler that passes errors through reduce, and drops attributes that may be objects.
type reducing struct{ slog.Handler }

// Enabled implements slog.Handler. It is limited to the lowest verbosity of client-go, as everywhere, because higher ones log objects.
func (h reducing) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h reducing) Handle(ctx context.Context, record slog.Record) error {
	reduced := slog.NewRecord(record.Time, record.Level, record.Message, record.PC)
	record.Attrs(func(a slog.Attr) bool {
		reduced.AddAttrs(reduceAttrs(a)...)
		return true
	})
	return h.Handler.Handle(ctx, reduced)
}

// WithAttrs implements slog.Handler.
func (h reducing) WithAttrs(list []slog.Attr) slog.Handler {
	return reducing{h.Handler.WithAttrs(reduceAttrs(list...))}
}

// WithGroup implements slog.Handler.
func (h reducing) WithGroup(name string) slog.Handler { return reducing{h.Handler.WithGroup(name)} }

func reduceAttrs(list ...slog.Attr) []slog.Attr {
	var reduced []slog.Attr
	for _, a := range list {
		if err, ok := a.Value.Any().(error); ok {
			reduced = append(reduced, slog.Any(a.Key, reduce("listing and watching", err, nil)))
		} else if a.Key == "reflector" || a.Key == "type" || a.Key == "logger" {
			reduced = append(reduced, a)
		}
	}
	return reduced
}
