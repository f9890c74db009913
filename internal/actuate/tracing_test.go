package actuate

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// traced returns options and the recorder of their spans.
func traced() (Options, *tracetest.SpanRecorder) {
	recorder, options := tracetest.NewSpanRecorder(), testOptions()
	options.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("")
	return options, recorder
}

// changeIn returns a change that was made in its own trace, whose IDs repeat the digit.
func changeIn(digit byte, version string) events.Change {
	id := slices.Repeat([]byte{digit}, 32)
	return changeOf(func(c *events.Change) {
		c.ResourceVersion, c.ChangedAt = version, version
		c.Source.Name = "db-" + version
		c.Trace = events.TraceContext{Parent: "00-" + string(id) + "-" + string(id[:16]) + "-01"}
	})
}

// tracedEvent returns an event that was delivered, with the span of its processing.
func tracedEvent(t *testing.T, options Options, change events.Change) *inFlightEvent {
	return newInFlightEvents(options.Tracer, durable(options), nil, options.Now).begin(t.Context(), &events.Delivery{Change: change})
}

func TestAPlanIsAChildOfTheNewestChangeAndLinkedWithAll(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes []events.Change
		newest  int
	}{
		{"one change", []events.Change{changeIn('a', "100")}, 0},
		{"the newest last", []events.Change{changeIn('a', "99"), changeIn('b', "100"), changeIn('c', "101")}, 2},
		{"the newest first", []events.Change{changeIn('a', "101"), changeIn('b', "100")}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			options, recorder := traced()
			w := workloadOf(t, "auto", wholeDB, nil)
			var taken []*inFlightEvent
			p := newPending(w.Key(), written)
			for _, change := range test.changes {
				event := tracedEvent(t, options, change)
				taken = append(taken, event)
				p.add(event, nil)
			}
			plan := startPlan(t.Context(), options.Tracer, p, w)
			plan.End()
			for _, event := range taken {
				event.span.End()
			}

			ended := recorder.Ended()
			parent := ended[1+test.newest]
			if got := ended[0].Parent().SpanID(); got != parent.SpanContext().SpanID() {
				t.Errorf("parent of the plan: got %s, want that of the newest change", got)
			}
			if got := len(ended[0].Links()); got != len(test.changes) {
				t.Errorf("links of the plan: got %d, want one to each of %d changes", got, len(test.changes))
			}
			for i, process := range ended[1:] {
				linked := func(link sdktrace.Link) bool { return link.SpanContext.SpanID() == process.SpanContext().SpanID() }
				if !slices.ContainsFunc(ended[0].Links(), linked) {
					t.Errorf("the plan has no link to change %d", i+1)
				}
				back := func(link sdktrace.Link) bool { return link.SpanContext.SpanID() == plan.SpanContext().SpanID() }
				if got := slices.ContainsFunc(process.Links(), back); got != (i != test.newest) {
					t.Errorf("change %d is linked to the plan: got %t", i+1, got)
				}
				created := test.changes[i].Trace.Context(t.Context())
				if process.Parent().SpanID() != trace.SpanContextFromContext(created).SpanID() {
					t.Errorf("change %d is not a child of what made it", i+1)
				}
			}
		})
	}
}

func TestAChangeWithoutATraceBeginsOne(t *testing.T) {
	options, recorder := traced()
	tracedEvent(t, options, changeOf(func(c *events.Change) { c.Trace = events.TraceContext{} })).span.End()
	span := recorder.Ended()[0]
	if span.Parent().IsValid() || len(span.Links()) > 0 || !span.SpanContext().IsValid() {
		t.Errorf("got parent %v and links %v, want a root without links", span.Parent(), span.Links())
	}
}

func TestAWorkloadThatGoesOnWaitingMakesNoMoreSpans(t *testing.T) {
	options, recorder := traced()
	options.MaxRollouts = 1
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Progress.Pods = 1 })
	busy := workloadOf(t, "auto", wholeDB, named("busy", func(w *workload.Workload) { w.Progress.Pods = 1 }))
	l := loopOf(t, options, w, busy)
	l.rollouts.following.follow(busy.Key(), &rollout{})
	change := changeIn('a', "100")
	change.Source = db
	p := l.debounce.pend(w, change)
	p.changes[db].event = tracedEvent(t, options, change)
	for range 3 {
		l.dispatcher.act(t.Context(), p, w)
		if p.held != plan.Limit {
			t.Fatalf("it is held for %s, want %s", p.held, plan.Limit)
		}
	}
	if ended := recorder.Ended(); len(ended) != 1 || ended[0].Name() != "plan" {
		t.Errorf("got the spans %v, want one plan", ended)
	}
	// A decision to wait for something else is a new one.
	busy.Rolled = map[string]workload.RolledFor{db.String(): decisionOf(w, change, nil).Record}
	l.rollouts.peers.add(busy.Key())
	l.dispatcher.act(t.Context(), p, w)
	if got := len(recorder.Ended()); p.held != plan.PeerFailed || got != 2 {
		t.Errorf("held for %s with %d plans, want %s and 2", p.held, got, plan.PeerFailed)
	}
}

func TestAFailedRequestSaysHowItFailedAndNotWhatTheAPIServerSaid(t *testing.T) {
	options, recorder := traced()
	_, span := options.Tracer.Start(t.Context(), "patch")
	failRequest(span, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", nil))
	span.End()
	got := attribute.NewSet(recorder.Ended()[0].Attributes()...)
	reason, _ := got.Value("error.type")
	code, _ := got.Value("http.response.status_code")
	if reason.AsString() != "Forbidden" || code.AsInt64() != 403 || recorder.Ended()[0].Status().Description != "not patched" {
		t.Errorf("got %v, %v", recorder.Ended()[0].Attributes(), recorder.Ended()[0].Status())
	}
}

func TestTheSpanOfARejectedEventHasTheReasonAndNotWhatAWebhookSaid(t *testing.T) {
	options, recorder := traced()
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	inFlight := newInFlightEvents(options.Tracer, durable(options), a.metrics, options.Now)
	inFlight.done = func(*events.Delivery, context.Context, error) {}
	event := inFlight.begin(t.Context(), &events.Delivery{Change: changeIn('a', "100")})
	inFlight.finish(t.Context(), event, &events.RejectError{Reason: events.ReasonPatchDenied, Err: errors.New("denied: token hunter2")})
	ended := recorder.Ended()[0]
	attributes := attribute.NewSet(ended.Attributes()...)
	kind, _ := attributes.Value("error.type")
	if status := ended.Status(); status.Description != events.ReasonPatchDenied || kind.AsString() != events.ReasonPatchDenied {
		t.Errorf("got the status %q and error.type %q, want %s", status.Description, kind.AsString(), events.ReasonPatchDenied)
	}
}
