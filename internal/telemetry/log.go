package telemetry

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger that writes to w. A line logged with a context that carries a span has trace_id, span_id and trace_flags.
//
// If Validate refuses the level or the format, the default is used instead, so that the error about it can be logged.
func NewLogger(w io.Writer, o LogOptions) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(o.Level)) != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if o.Format == "text" {
		handler = slog.NewTextHandler(w, options)
	}
	return slog.New(traceHandler{handler})
}

// traceHandler adds the identity of the context's span to every record. In a logger with an open group it adds it to the group; the
// programs open none.
type traceHandler struct{ slog.Handler }

// WithAttrs implements slog.Handler.
func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}

// Handle implements slog.Handler.
func (h traceHandler) Handle(ctx context.Context, record slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		record = record.Clone()
		record.AddAttrs(
			slog.String("trace_id", span.TraceID().String()),
			slog.String("span_id", span.SpanID().String()),
			slog.String("trace_flags", span.TraceFlags().String()),
		)
	}
	return h.Handler.Handle(ctx, record)
}
