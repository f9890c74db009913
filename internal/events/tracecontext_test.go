package events

import "testing"

func TestTraceContextGoesBothWays(t *testing.T) {
	if got := TraceFrom(t.Context()); got != (TraceContext{}) {
		t.Errorf("got %v without a span", got)
	}
	want := change().Trace
	if got := TraceFrom(want.Context(t.Context())); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
