package project

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/events"
)

// stream is a bus that takes no event while it is down.
type stream struct {
	down bool
	has  []events.Projection
}

func (s *stream) Cluster() string { return "prod" }

func (s *stream) PublishProjection(_ context.Context, p events.Projection) error {
	if s.down {
		return errors.New("nats is not connected")
	}
	s.has = append(s.has, p)
	return nil
}

func TestAReportIsPublishedOnceTheStreamIsThere(t *testing.T) {
	s, _ := testIndex(t)
	metrics, err := newMetrics(noop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	bus, client, log := &stream{down: true}, fake.NewClientset(), slog.New(slog.DiscardHandler)
	l := &loop{
		index: s.index, apply: &applier{client: client, digests: s.index.reader.digests}, log: log, now: time.Now, items: make(map[key]*item),
		reporter: &reporter{
			client: client, bus: bus, metrics: metrics, tracer: tracenoop.NewTracerProvider().Tracer(""), log: log, now: time.Now,
		},
		queue: workqueue.NewTypedDelayingQueue[key](),
	}
	defer l.queue.ShutDown()
	if err := s.Add(widget("main", "no form", "a")); err != nil {
		t.Fatal(err)
	}
	main := key{kind: "widget", namespace: "shop", name: "main"}
	l.step(t.Context(), main)
	if len(bus.has) != 0 {
		t.Fatalf("while the stream is down: got %d reports", len(bus.has))
	}
	bus.down = false
	for range 3 {
		l.step(t.Context(), main)
	}
	told, err := client.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(bus.has) != 1 || bus.has[0].Reason != "annotation-invalid" || len(told.Items) != 1 {
		t.Errorf("got %d reports and %d Kubernetes Events, want one of each: %+v", len(bus.has), len(told.Items), bus.has)
	}
}
