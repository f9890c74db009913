package program

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/keyturn/keyturn/tests/testkit"
)

// service is the service of the tests. Nothing scrapes it.
func service() Service { return Service{Name: "keyturn-watcher", Version: "1.2.3", Cluster: "west"} }

// scraped is service with a reader for /metrics.
func scraped() Service {
	s := service()
	s.Scraped = true
	return s
}

// setup returns telemetry that is shut down with the test, if the test does not do so itself.
func setup(t testing.TB, service Service) *Telemetry {
	t.Helper()
	tel, err := Setup(t.Context(), service)
	testkit.Must(t, err)
	tel.flushes.limit = testkit.Patience
	t.Cleanup(func() {
		if err := tel.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
	return tel
}

// receiver receives spans over OTLP/HTTP and passes each request on.
func receiver(t testing.TB) (url string, requests <-chan *collector.ExportTraceServiceRequest) {
	t.Helper()
	received := make(chan *collector.ExportTraceServiceRequest, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := new(collector.ExportTraceServiceRequest)
		if r.URL.Path != "/v1/traces" || err != nil || proto.Unmarshal(body, request) != nil {
			t.Errorf("%s %s is not an export of spans (%v)", r.Method, r.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		received <- request
	}))
	t.Cleanup(server.Close)
	return server.URL, received
}

func TestTracesAreOffUntilTheEnvironmentAsks(t *testing.T) {
	const endpoint = "http://127.0.0.1:1"
	for _, tt := range []struct {
		name string
		env  map[string]string
		want bool // recording
	}{
		{"without variables they are off", nil, false},
		{"an endpoint turns them on", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, true},
		{"an endpoint for traces turns them on", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint}, true},
		{"the exporter none turns them off again", map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, false},
		{"a disabled SDK is off whatever else is said", map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clearEnvironment(t)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			_, span := setup(t, service()).TracerProvider.Tracer("test").Start(t.Context(), "detect secret")
			// The span is not ended, so that nothing waits to be sent to an endpoint that does not exist.
			if span.IsRecording() != tt.want {
				t.Errorf("recording is %t, want %t", span.IsRecording(), tt.want)
			}
		})
	}
}

func TestSpansReachTheReceiverWithTheResource(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want map[string]string // some attributes of the resource; an empty value means that it must be missing
	}{
		{"outside a cluster it is the service", nil, map[string]string{
			"service.name": "keyturn-watcher", "service.namespace": "keyturn", "service.version": "1.2.3",
			"k8s.cluster.name": "west", "telemetry.sdk.language": "go", "k8s.pod.name": "", "k8s.namespace.name": "",
		}},
		{
			"in a pod it is the pod, too",
			map[string]string{"POD_NAME": "watcher-0", "POD_NAMESPACE": "keyturn-system", "POD_UID": "5e1f"},
			map[string]string{
				"k8s.pod.name": "watcher-0", "k8s.namespace.name": "keyturn-system",
				"k8s.pod.uid": "5e1f", "service.instance.id": "5e1f",
			},
		},
		{
			"attributes of the environment are merged and win",
			map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=prod,k8s.cluster.name=east"},
			map[string]string{"deployment.environment.name": "prod", "k8s.cluster.name": "east", "service.name": "keyturn-watcher"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clearEnvironment(t)
			url, requests := receiver(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			tel := setup(t, service())
			_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "detect secret",
				trace.WithSpanKind(trace.SpanKindProducer))
			span.End()
			ended, end := context.WithCancel(t.Context())
			end()
			testkit.Must(t, tel.Shutdown(ended))

			// Shutdown has flushed although the context has ended, so the request has arrived.
			if len(requests) != 1 {
				t.Fatalf("%d requests, want 1", len(requests))
			}
			exported := (<-requests).GetResourceSpans()[0]
			if name := exported.GetScopeSpans()[0].GetSpans()[0].GetName(); name != "detect secret" {
				t.Errorf("span is %q", name)
			}
			got := map[string]string{}
			for _, attr := range exported.GetResource().GetAttributes() {
				got[attr.GetKey()] = attr.GetValue().GetStringValue()
			}
			if got["service.instance.id"] == "" {
				t.Error("no service.instance.id")
			}
			for key, want := range tt.want {
				if got[key] != want {
					t.Errorf("%s is %q, want %q", key, got[key], want)
				}
			}
		})
	}
}

func TestShutdownIsBoundedWhereTheReceiverHangs(t *testing.T) {
	clearEnvironment(t)
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", strconv.Itoa(int(2*testkit.Patience.Milliseconds()))) // so that the exporter does not end it

	tel := setup(t, service())
	tel.flushes.limit = 50 * time.Millisecond
	_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "detect secret")
	span.End()

	ended := make(chan error, 1)
	go func() { ended <- tel.Shutdown(t.Context()) }()
	if err := testkit.Receive(t, "the end of the shutdown while the receiver hangs", ended); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want the deadline", err)
	}
}

// clearEnvironment unsets the OpenTelemetry variables of the machine's own environment.
func clearEnvironment(t testing.TB) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_EXPORTER",
		"OTEL_TRACES_SAMPLER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_BSP_MAX_QUEUE_SIZE",
		"POD_NAME", "POD_NAMESPACE", "POD_UID",
	} {
		t.Setenv(name, "")
	}
}
