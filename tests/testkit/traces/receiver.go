// Package traces receives the spans that programs under test send, in place of a Jaeger.
package traces

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver keeps the spans that are sent to it by OTLP over HTTP. Its methods may be called concurrently.
type Receiver struct {
	url string

	mu    sync.Mutex
	spans []Span
}

// Span is a span as it was sent.
type Span struct {
	*otlp.Span
	// Service is the name of the program that has sent it.
	Service string

	resource []*common.KeyValue
}

// Receive starts a receiver, which ends with the test.
func Receive(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{}
	server := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// URL returns the address of the receiver, in the form of OTEL_EXPORTER_OTLP_ENDPOINT.
func (r *Receiver) URL() string { return r.url }

// Spans returns the spans in the order in which they came.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

func (r *Receiver) serve(w http.ResponseWriter, request *http.Request) {
	body := io.Reader(request.Body)
	if request.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(request.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	content, err := io.ReadAll(body)
	var export collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(content, &export) != nil {
		http.Error(w, "not an export", http.StatusBadRequest)
		return
	}
	r.add(&export)
}

func (r *Receiver) add(export *collector.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range export.GetResourceSpans() {
		attributes := resource.GetResource().GetAttributes()
		service := texts(attributes)[serviceName]
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				r.spans = append(r.spans, Span{Span: span, Service: service, resource: attributes})
			}
		}
	}
}
