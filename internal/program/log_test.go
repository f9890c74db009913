package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/klog/v2"

	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	testTrace = "0af7651916cd43dd8448eb211c80319c"
	testSpan  = "b7ad6b7169203331"
)

// spanContext returns a context that carries a sampled span.
func spanContext(t testing.TB) context.Context {
	t.Helper()
	traceID, err := trace.TraceIDFromHex(testTrace)
	testkit.Must(t, err)
	spanID, err := trace.SpanIDFromHex(testSpan)
	testkit.Must(t, err)
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

func TestLoggerPutsTheSpanBesideItsAttributes(t *testing.T) {
	for ctx, want := range map[context.Context]map[string]any{
		t.Context():    {"a": "1", "b": "2"},
		spanContext(t): {"a": "1", "b": "2", "trace_id": testTrace, "span_id": testSpan, "trace_flags": "01"},
	} {
		var out bytes.Buffer
		NewLogger(&out, DefaultLogOptions()).With("a", "1").With("b", "2").InfoContext(ctx, "m")
		got := decodeLines(t, out.Bytes())[0]
		for _, key := range []string{slog.TimeKey, slog.LevelKey, slog.MessageKey} {
			delete(got, key)
		}
		testkit.WantEqual(t, "fields", want, got)
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
	for level, want := range map[string]string{"debug": "DEBUG INFO WARN", "warn": "WARN"} {
		var out bytes.Buffer
		logger := NewLogger(&out, LogOptions{Level: level, Format: "text"})
		logger.DebugContext(t.Context(), "m")
		logger.InfoContext(t.Context(), "m")
		logger.WarnContext(t.Context(), "m")
		var got []string
		for line := range strings.Lines(out.String()) {
			_, written, _ := strings.Cut(line, "level=")
			got = append(got, strings.TrimSuffix(written, " msg=m\n"))
		}
		testkit.WantEqual(t, "lines of level "+level, want, strings.Join(got, " "))
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
	testkit.WantEqual(t, "lines", want, got)
}
