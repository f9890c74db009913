package program

import (
	"context"
	"errors"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/keyturn/keyturn/tests/testkit"
)

// gatedExporter exports when its gate opens.
type gatedExporter struct {
	gate chan error // what each export returns
}

func (e *gatedExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return <-e.gate }
func (e *gatedExporter) Shutdown(context.Context) error                             { return nil }

func TestSpanQueueDropsAndCountsWhatDoesNotFit(t *testing.T) {
	of := func(outcome string) string { return "keyturn.telemetry.spans{outcome=" + outcome + "}" }
	for _, tt := range []struct {
		name    string
		sampler sdktrace.Sampler
		export  error
		want    map[string]int64
	}{
		{"spans over the limit are dropped", sdktrace.AlwaysSample(), nil, map[string]int64{of("exported"): 4, of("dropped"): 6}},
		{
			"an export that fails is counted as such", sdktrace.AlwaysSample(), errors.New("receiver is gone"),
			map[string]int64{of("failed"): 4, of("dropped"): 6},
		},
		{"spans that are not sampled take no place", recordOnly{}, nil, map[string]int64{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clearEnvironment(t)
			t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
			reader := sdkmetric.NewManualReader()
			exporter := &gatedExporter{gate: make(chan error)}
			queue, err := newSpanQueue(exporter, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
			testkit.Must(t, err)
			provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(queue), sdktrace.WithSampler(tt.sampler))
			// The exporter's gate is closed, and yet this returns: a full queue blocks nobody.
			for range 10 {
				_, span := provider.Tracer("test").Start(t.Context(), "span")
				span.End()
			}
			var shutdown error
			flushed := make(chan struct{})
			go func() {
				defer close(flushed)
				shutdown = provider.Shutdown(t.Context())
			}()
			for done := false; !done; {
				select {
				case exporter.gate <- tt.export:
				case <-flushed:
					done = true
				}
			}
			if shutdown != nil {
				t.Errorf("shutting down: %v", shutdown)
			}
			testkit.WantEqual(t, "spans", tt.want, testkit.Measured(t, reader))
			if pending := queue.pending.Load(); pending != 0 {
				t.Errorf("%d spans are pending after the end", pending)
			}
		})
	}
}

// recordOnly is a sampler whose spans are recorded but not exported.
type recordOnly struct{}

func (recordOnly) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly}
}
func (recordOnly) Description() string { return "recordOnly" }
