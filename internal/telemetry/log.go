package telemetry

import (
	"context"
	"io"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger that writes to w in the format and from the level of opts. A line that is logged with a
// context which carries a span has its trace_id, span_id and trace_flags, at the top level also inside groups.
//
// A level or format that Options.Validate refuses counts as its default, so that an error about it can be logged.
func NewLogger(w io.Writer, opts Options) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(opts.LogLevel)) != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if opts.LogFormat == "text" {
		handler = slog.NewTextHandler(w, options)
	}
	return slog.New(&traceHandler{top: handler})
}

// traceHandler adds the identity of the context's span to every record.
//
// A handler cannot reach the top level again once a group has been opened on it. Groups are therefore kept here and
// are nested into the record when it is written, so that the identity can be put beside them.
type traceHandler struct {
	top    slog.Handler
	groups []group
}

// group is one WithGroup, with the attributes that were added inside it.
type group struct {
	name  string
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (h *traceHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.top.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h *traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	last := len(h.groups) - 1
	if last < 0 {
		return &traceHandler{top: h.top.WithAttrs(attrs)}
	}
	groups := slices.Clone(h.groups)
	groups[last].attrs = slices.Concat(groups[last].attrs, attrs)
	return &traceHandler{top: h.top, groups: groups}
}

// WithGroup implements slog.Handler.
func (h *traceHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &traceHandler{top: h.top, groups: append(slices.Clip(h.groups), group{name: name})}
}

// Handle implements slog.Handler.
func (h *traceHandler) Handle(ctx context.Context, record slog.Record) error {
	if len(h.groups) > 0 {
		record = h.nest(record)
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		record = record.Clone()
		record.AddAttrs(
			slog.String("trace_id", span.TraceID().String()),
			slog.String("span_id", span.SpanID().String()),
			slog.String("trace_flags", span.TraceFlags().String()),
		)
	}
	return h.top.Handle(ctx, record)
}

// nest returns the record with its attributes inside the groups.
func (h *traceHandler) nest(record slog.Record) slog.Record {
	attrs := make([]slog.Attr, 0, record.NumAttrs())
	record.Attrs(func(attr slog.Attr) bool {
		attrs = append(attrs, attr)
		return true
	})
	for _, g := range slices.Backward(h.groups) {
		attrs = []slog.Attr{slog.GroupAttrs(g.name, slices.Concat(g.attrs, attrs)...)}
	}
	nested := slog.NewRecord(record.Time, record.Level, record.Message, record.PC)
	nested.AddAttrs(attrs...)
	return nested
}
