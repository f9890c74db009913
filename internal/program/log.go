package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/klog/v2"
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

// The valid levels and formats of LogOptions.
var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"json", "text"}
)

// LogOptions select the level and the format of the log.
type LogOptions struct {
	// Level is the least severe level that is logged: debug, info, warn or error. Default info.
	Level string
	// Format is json or text. Default json.
	Format string
}

// DefaultLogOptions returns the defaults.
func DefaultLogOptions() LogOptions { return LogOptions{Level: "info", Format: "json"} }

// AddFlags adds a flag for each field, with the field's current value as the default.
func (o *LogOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Level, "log-level", o.Level, "least severe `level` to log: "+oneOf(logLevels))
	flags.StringVar(&o.Format, "log-format", o.Format, "log `format`: "+oneOf(logFormats))
}

// Validate returns an error with a line for each invalid field: the flag, its value and the allowed ones.
func (o *LogOptions) Validate() error {
	var errs []error
	if !slices.Contains(logLevels, o.Level) {
		errs = append(errs, fmt.Errorf("--log-level: %q, want %s", o.Level, oneOf(logLevels)))
	}
	if !slices.Contains(logFormats, o.Format) {
		errs = append(errs, fmt.Errorf("--log-format: %q, want %s", o.Format, oneOf(logFormats)))
	}
	return errors.Join(errs...)
}

// oneOf returns a list of alternatives as prose: "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Bridge sends the logs of libraries to logger: client-go's klog, and OpenTelemetry's internal log and errors, each with its component.
// These are globals of the process, and klog's must not change while it is in use: Bridge must be called once, before anything else.
//
// The verbosity of klog stays 0: from 8 on it logs the bodies of requests, and with them Secrets.
func Bridge(logger *slog.Logger) {
	klog.SetSlogLogger(logger.With("component", "client-go"))

	sdk := logger.With("component", "opentelemetry")
	otel.SetLogger(logr.FromSlogHandler(sdk.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		// The SDK calls this from its own goroutines, without a context.
		sdk.WarnContext(context.Background(), "telemetry error", "err", err)
	}))
}
