package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/klog/v2"
)

const (
	testTrace = "0af7651916cd43dd8448eb211c80319c"
	testSpan  = "b7ad6b7169203331"
)

// spanContext returns a context that carries a sampled span.
func spanContext(t testing.TB) context.Context {
	t.Helper()
	traceID, err := trace.TraceIDFromHex(testTrace)
	must(t, err)
	spanID, err := trace.SpanIDFromHex(testSpan)
	must(t, err)
	return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled,
	}))
}

// decodeLines returns the JSON objects of a log, which has one on each line.
func decodeLines(t testing.TB, log []byte) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range bytes.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		lines = append(lines, fields)
	}
	return lines
}

func TestLoggerPutsTheSpanAtTheTopLevel(t *testing.T) {
	identity := map[string]any{"trace_id": testTrace, "span_id": testSpan, "trace_flags": "01"}
	for _, tt := range []struct {
		name string
		log  func(ctx context.Context, logger *slog.Logger)
		span bool
		want map[string]any // besides time, level, msg and the span's identity
	}{
		{
			"a line without a span has no identity",
			func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "a", "1") },
			false,
			map[string]any{"a": "1"},
		},
		{
			"a line with a span has its identity",
			func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "a", "1") },
			true,
			map[string]any{"a": "1"},
		},
		{
			"attributes of the logger stay beside it",
			func(ctx context.Context, l *slog.Logger) { l.With("a", "1").With("b", "2").InfoContext(ctx, "m") },
			true,
			map[string]any{"a": "1", "b": "2"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			ctx := t.Context()
			if tt.span {
				ctx = spanContext(t)
				maps.Copy(tt.want, identity)
			}
			tt.log(ctx, NewLogger(&out, DefaultLogOptions()))
			lines := decodeLines(t, out.Bytes())
			if len(lines) != 1 {
				t.Fatalf("got %d lines, want 1", len(lines))
			}
			got := lines[0]
			delete(got, slog.TimeKey)
			delete(got, slog.LevelKey)
			delete(got, slog.MessageKey)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoggerPutsTheSpanIntoAnOpenGroup(t *testing.T) {
	var out bytes.Buffer
	NewLogger(&out, DefaultLogOptions()).With("a", "1").WithGroup("g").With("b", "2").InfoContext(spanContext(t), "m", "c", "3")
	got := decodeLines(t, out.Bytes())[0]
	want := map[string]any{"b": "2", "c": "3", "trace_id": testTrace, "span_id": testSpan, "trace_flags": "01"}
	if diff := cmp.Diff(want, got["g"]); diff != "" || got["a"] != "1" {
		t.Errorf("a is %v, group (-want +got):\n%s", got["a"], diff)
	}
}

func TestLoggerHandlerKeepsTheRulesOfSlog(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return NewLogger(&out, DefaultLogOptions()).Handler()
	}, func(t *testing.T) map[string]any {
		return decodeLines(t, out.Bytes())[0]
	})
}

func TestLoggerLevelAndFormat(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts LogOptions
		want string
	}{
		{"info leaves out debug", LogOptions{Level: "info", Format: "text"}, "info warn error"},
		{"debug leaves out nothing", LogOptions{Level: "debug", Format: "text"}, "debug info warn error"},
		{"an unknown level counts as info", LogOptions{Level: "loud", Format: "text"}, "info warn error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			logger := NewLogger(&out, tt.opts)
			logger.DebugContext(t.Context(), "debug")
			logger.InfoContext(t.Context(), "info")
			logger.WarnContext(t.Context(), "warn")
			logger.ErrorContext(t.Context(), "error")
			var got []string
			for line := range strings.Lines(out.String()) {
				_, message, ok := strings.Cut(strings.TrimSpace(line), "msg=")
				if !ok {
					t.Fatalf("%q is not a line of text", line)
				}
				got = append(got, message)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBridgeSendsLibrariesToTheLogger(t *testing.T) {
	var out bytes.Buffer
	Bridge(NewLogger(&out, DefaultLogOptions()))
	t.Cleanup(klog.ClearLogger)

	klog.ErrorS(errors.New("no route"), "watch ended", "kind", "Secret")
	klog.V(8).InfoS("a body that must not be seen")
	otel.Handle(errors.New("receiver is gone"))

	got := decodeLines(t, out.Bytes())
	for _, line := range got {
		delete(line, slog.TimeKey)
	}
	want := []map[string]any{
		{"level": "ERROR", "msg": "watch ended", "component": "client-go", "err": "no route", "kind": "Secret"},
		{"level": "WARN", "msg": "telemetry error", "component": "opentelemetry", "err": "receiver is gone"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
