package tests

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// spans is an OTLP receiver that keeps the spans by name.
type spans struct {
	mu     sync.Mutex
	byName map[string][]*otlp.Span
	// service is the service.name of each span, by its id.
	service map[string]string
}

func receiveOTLP(t *testing.T) (*spans, string) {
	t.Helper()
	s := &spans{byName: make(map[string][]*otlp.Span), service: make(map[string]string)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
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
		s.add(&export)
	}))
	t.Cleanup(server.Close)
	return s, server.URL
}

func (s *spans) add(export *collector.ExportTraceServiceRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range export.GetResourceSpans() {
		service := ""
		for _, attribute := range resource.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.byName[span.GetName()] = append(s.byName[span.GetName()], span)
				s.service[string(span.GetSpanId())] = service
			}
		}
	}
}

// addTo adds the content of every span.
func (s *spans) addTo(h *haystack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, found := range s.byName {
		for _, span := range found {
			h.add("span "+name, []byte(span.String()))
		}
	}
}

// one returns the only span of a name, or nil while there is none. Patches of records, which belong to no change, do not count.
func (s *spans) one(t *testing.T, name string) *otlp.Span {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := slices.DeleteFunc(slices.Clone(s.byName[name]), func(span *otlp.Span) bool {
		return strings.HasPrefix(name, "patch ") && len(span.GetParentSpanId()) == 0
	})
	if len(found) > 1 {
		t.Fatalf("spans called %q: got %d, want 1", name, len(found))
	}
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

func TestOneTraceLeadsFromTheChangeToTheLastReadyPod(t *testing.T) {
	received, endpoint := receiveOTLP(t)
	r := newRig(t, programs.Options{
		ActuatorArgs: []string{"--settle", "50ms"},
		Env: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_BSP_SCHEDULE_DELAY=100",
		},
	})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 2, nil))
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	completed := r.outcomeOf("web", events.VerbCompleted)

	const destination = "keyturn.v1.{cluster}.secret.{namespace}.{name}"
	chain := []struct{ name, parent, service string }{
		{"detect secret", "", "keyturn-watcher"},
		{"publish " + destination, "detect secret", "keyturn-watcher"},
		{"process " + destination, "publish " + destination, "keyturn-actuator"},
		{"plan", "process " + destination, "keyturn-actuator"},
		{"patch deployment", "plan", "keyturn-actuator"},
		{"rollout deployment", "plan", "keyturn-actuator"},
	}
	r.eventually("every span of the change has arrived", func(context.Context) bool {
		for _, link := range chain {
			if received.one(t, link.name) == nil {
				return false
			}
		}
		return true
	})
	trace := received.one(t, "publish "+destination).GetTraceId()
	for _, link := range chain {
		span := received.one(t, link.name)
		if !slices.Equal(span.GetTraceId(), trace) {
			t.Errorf("%s is in another trace", link.name)
		}
		if service := received.service[string(span.GetSpanId())]; service != link.service {
			t.Errorf("service of %s: got %s, want %s", link.name, service, link.service)
		}
		if parent := received.one(t, link.parent); !slices.Equal(span.GetParentSpanId(), parent.GetSpanId()) {
			t.Errorf("the parent of %s is not %q", link.name, link.parent)
		}
	}

	rollout := received.one(t, "rollout deployment")
	if end := time.Unix(0, int64(rollout.GetEndTimeUnixNano())); end.Before(completed.StartedAt) {
		t.Errorf("the rollout's span ends at %s, before the patch at %s", end, completed.StartedAt)
	}
	id := hex.EncodeToString(trace)
	for what, traceparent := range map[string]string{
		"the pod template":      r.deployment("web").Spec.Template.Annotations["keyturn.dev/traceparent"],
		"the completed outcome": completed.Trace.Parent,
	} {
		if !strings.Contains(traceparent, id) {
			t.Errorf("traceparent of %s: got %q, want trace %s", what, traceparent, id)
		}
	}
	for _, program := range []*programs.Program{r.watcher, r.actuator} {
		if !strings.Contains(program.Output(), `"trace_id":"`+id+`"`) {
			t.Errorf("no log line of the %s is of trace %s", program.Name(), id)
		}
	}
}
