package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Trace is a trace as Jaeger shows it.
type Trace struct {
	ID string
	// Spans are in the order of their start.
	Spans []Span
	// Warnings are what Jaeger finds wrong with the trace as a whole.
	Warnings []string
}

// Span is one span of a trace.
type Span struct {
	ID string
	// Parent is the id of the span that this one is a child of. Empty for a root.
	Parent string
	// Service is the name of the program, and Resource has the other attributes of its resource.
	Service  string
	Resource map[string]string
	// Operation is the name of the span.
	Operation string
	Tags      map[string]string
	Start     time.Time
	Duration  time.Duration
	// Warnings are what Jaeger finds wrong with the span, such as a missing parent or clock skew.
	Warnings []string
}

// searchLimit is the maximum number of traces that a search returns.
const searchLimit = 1000

// Traces returns the traces of the last hour in which one span of the service has all of the tags, oldest first.
func (j *Jaeger) Traces(ctx context.Context, service string, tags map[string]string) ([]Trace, error) {
	wanted, err := json.Marshal(tags)
	if err != nil {
		return nil, fmt.Errorf("asking Jaeger for traces: %w", err)
	}
	query := url.Values{
		"service": {service}, "tags": {string(wanted)}, "lookback": {"1h"}, "limit": {fmt.Sprint(searchLimit)},
	}
	var found []jaegerTrace
	if err := j.ask(ctx, "/api/traces?"+query.Encode(), &found); err != nil {
		return nil, fmt.Errorf("asking Jaeger for traces of %s: %w", service, err)
	}
	traces := make([]Trace, 0, len(found))
	for _, trace := range found {
		traces = append(traces, trace.read())
	}
	slices.SortFunc(traces, func(a, b Trace) int { return a.Spans[0].Start.Compare(b.Spans[0].Start) })
	return traces, nil
}

// ask reads the data of a response of the API.
func (j *Jaeger) ask(ctx context.Context, path string, data any) error {
	return j.get(ctx, j.query+path, &struct{ Data any }{data})
}

// maxAnswer bounds how much of a response is read, in bytes.
const maxAnswer = 64 << 20

// get requests a URL, and decodes the response unless into is nil.
func (j *Jaeger) get(ctx context.Context, address string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	response, err := j.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", response.Status, body)
	case into == nil:
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// jaegerTrace is a trace as the API writes it.
type jaegerTrace struct {
	TraceID   string
	Spans     []jaegerSpan
	Processes map[string]struct {
		ServiceName string
		Tags        jaegerTags
	}
	Warnings []string
}

type jaegerSpan struct {
	SpanID, OperationName, ProcessID string
	References                       []struct{ RefType, TraceID, SpanID string }
	// StartTime and Duration are in microseconds.
	StartTime, Duration int64
	Tags                jaegerTags
	Warnings            []string
}

type jaegerTags []struct {
	Key   string
	Value any
}

func (t jaegerTags) read() map[string]string {
	tags := make(map[string]string, len(t))
	for _, tag := range t {
		tags[tag.Key] = fmt.Sprint(tag.Value)
	}
	return tags
}

func (t jaegerTrace) read() Trace {
	trace := Trace{ID: t.TraceID, Warnings: t.Warnings, Spans: make([]Span, 0, len(t.Spans))}
	for _, s := range t.Spans {
		process := t.Processes[s.ProcessID]
		span := Span{
			ID: s.SpanID, Service: process.ServiceName, Resource: process.Tags.read(), Operation: s.OperationName, Tags: s.Tags.read(),
			Start: time.UnixMicro(s.StartTime), Duration: time.Duration(s.Duration) * time.Microsecond, Warnings: s.Warnings,
		}
		for _, reference := range s.References {
			if reference.RefType == "CHILD_OF" && reference.TraceID == t.TraceID && span.Parent == "" {
				span.Parent = reference.SpanID
			}
		}
		trace.Spans = append(trace.Spans, span)
	}
	slices.SortStableFunc(trace.Spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return trace
}
