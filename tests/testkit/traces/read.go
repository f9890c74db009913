package traces

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/keyturn/keyturn/tests/testbed"
)

// serviceName is the attribute of a resource that names the program.
const serviceName = "service.name"

// Traces returns the traces in which one span of the service has all of the tags, oldest first, in the form of those of Jaeger. The error is always
// nil; a [testbed.Jaeger] has the same method.
func (r *Receiver) Traces(_ context.Context, service string, tags map[string]string) ([]testbed.Trace, error) {
	byID := make(map[string]*testbed.Trace)
	for _, span := range r.Spans() {
		id := hex.EncodeToString(span.GetTraceId())
		if byID[id] == nil {
			byID[id] = &testbed.Trace{ID: id}
		}
		byID[id].Spans = append(byID[id].Spans, span.read())
	}
	isWanted := func(span testbed.Span) bool {
		for key, value := range tags {
			if span.Tags[key] != value {
				return false
			}
		}
		return span.Service == service
	}
	var found []testbed.Trace
	for _, trace := range byID {
		if slices.ContainsFunc(trace.Spans, isWanted) {
			slices.SortStableFunc(trace.Spans, func(a, b testbed.Span) int { return a.Start.Compare(b.Start) })
			found = append(found, *trace)
		}
	}
	slices.SortFunc(found, func(a, b testbed.Trace) int { return a.Spans[0].Start.Compare(b.Spans[0].Start) })
	return found, nil
}

// read returns the span as Jaeger shows it: its times in microseconds, its kind and its status as tags, and its attributes as texts.
func (s Span) read() testbed.Span {
	start, end := s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano()
	read := testbed.Span{
		ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()), Operation: s.GetName(),
		Service: s.Service, Resource: texts(s.resource), Tags: texts(s.GetAttributes()),
		Start: time.UnixMicro(int64(start / 1000)), Duration: time.Duration((end-start)/1000) * time.Microsecond,
	}
	delete(read.Resource, serviceName)
	read.Tags["span.kind"] = strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_"))
	if s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR {
		read.Tags["error"], read.Tags["otel.status_code"] = "true", "ERROR"
	}
	return read
}

// texts returns attributes by their names. A list is in JSON.
func texts(attributes []*common.KeyValue) map[string]string {
	all := make(map[string]string, len(attributes))
	for _, attribute := range attributes {
		all[attribute.GetKey()] = textOf(attribute.GetValue())
	}
	return all
}

func textOf(value *common.AnyValue) string {
	switch v := value.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	case *common.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *common.AnyValue_DoubleValue:
		return strconv.FormatFloat(v.DoubleValue, 'g', -1, 64)
	case *common.AnyValue_ArrayValue:
		list := make([]string, 0, len(v.ArrayValue.GetValues()))
		for _, item := range v.ArrayValue.GetValues() {
			list = append(list, textOf(item))
		}
		text, _ := json.Marshal(list) // Texts can always be encoded.
		return string(text)
	}
	return ""
}
