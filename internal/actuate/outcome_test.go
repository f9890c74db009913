package actuate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/events/embedded"
)

// busOf is a bus of the tests' cluster on a server of its own.
func busOf(t *testing.T) *events.Bus {
	t.Helper()
	return busesOf(t, testOptions().Cluster)[0]
}

// busesOf are the buses of several clusters on one server.
func busesOf(t *testing.T, clusters ...string) []*events.Bus {
	t.Helper()
	server, err := embedded.Start(embedded.Options{StoreDir: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	nc, err := nats.Connect("", server.ClientOption())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Declare(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	buses := make([]*events.Bus, len(clusters))
	for i, cluster := range clusters {
		if buses[i], err = events.Open(t.Context(), nc, cluster, nil); err != nil {
			t.Fatal(err)
		}
	}
	return buses
}

func outcomeOf(name string) events.Outcome {
	return events.Outcome{
		Cluster: "demo", Verb: events.VerbFailed, ResourceVersion: "50", Time: written, Cause: "uid/100", Reason: "timed-out",
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: name, UID: "uid-" + name},
	}
}

func TestOutcomesArePublishedUntilNoneIsLeft(t *testing.T) {
	e := engineOf(t, testOptions())
	r := e.reporter
	r.bus = busOf(t)
	refused := outcomeOf("refused")
	refused.Cluster = "another"
	for _, outcome := range []events.Outcome{outcomeOf("first"), refused, outcomeOf("last")} {
		r.report(t.Context(), outcome)
	}
	close(r.queue)
	r.run(t.Context())
	for _, name := range []string{"first", "last"} {
		stored, err := r.bus.Last(t.Context(), events.OutcomeSubject("demo", outcomeOf(name).Workload))
		if err != nil {
			t.Fatal(err)
		}
		got, err := stored.Outcome()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(outcomeOf(name), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheReporterEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	engineOf(t, testOptions()).reporter.run(ctx)
}

func TestAnOutcomeThatIsRefusedIsNotTriedAgain(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"success", nil, false},
		{"nobody answers", nats.ErrTimeout, true},
		{"the bus refuses the outcome", fmt.Errorf("publishing: %w", &events.RejectError{Reason: "malformed", Err: errors.New("no")}), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := retriable(test.err); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestAFullQueueIsWaitedForUntilTheProgramStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		a, err := New(testOptions())
		if err != nil {
			t.Fatal(err)
		}
		r := newReporter(a, newKubeEvents(a.options, a.log, a.metrics.dropEvent), closing)
		for range reportQueue {
			r.enqueue(t.Context(), outcomeOf("web"))
		}
		waiting := make(chan struct{})
		enqueue := func() {
			r.enqueue(t.Context(), outcomeOf("one-more"))
			close(waiting)
		}
		go enqueue()
		synctest.Wait()
		select {
		case <-waiting:
			t.Error("an outcome found a place in a full queue")
		default:
		}
		<-r.queue
		<-waiting
		waiting = make(chan struct{})
		go enqueue()
		close(closing)
		<-waiting
		if len(r.queue) != reportQueue {
			t.Errorf("%d outcomes wait, want %d", len(r.queue), reportQueue)
		}
	})
}

func TestTheProblemsOfAWorkloadAreToldOnceForEachWording(t *testing.T) {
	e := engineOf(t, testOptions())
	problem := func(texts ...string) *workload {
		w := workloadOf(t, "auto", wholeDB, nil)
		for _, text := range texts {
			w.problems = append(w.problems, errors.New(text))
		}
		return w
	}
	for _, step := range []struct {
		name string
		w    *workload
		want string // empty: nothing is told
	}{
		{"no problem", problem(), ""},
		{"a problem", problem("a"), "a"},
		{"the same problem", problem("a"), ""},
		{"another one as well", problem("a", "b"), "a; b"},
		{"none any more", problem(), ""},
		{"the first one again", problem("a"), "a"},
	} {
		e.reporter.problems(t.Context(), step.w)
		got := ""
		if len(e.reporter.kube.queue) > 0 {
			event := <-e.reporter.kube.queue
			got = event.Message
			if event.Reason != "InvalidAnnotation" || event.Type != "Warning" || event.InvolvedObject.Name != "web" {
				t.Errorf("%s: told as %s %s of %s", step.name, event.Type, event.Reason, event.InvolvedObject.Name)
			}
		}
		if got != step.want {
			t.Errorf("%s: told %q, want %q", step.name, got, step.want)
		}
	}
}

func TestTheOutcomeOfAllThatIsPendingNamesTheNewestAsItsCause(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload) {
		w.refs = append(w.refs, Reference{Kind: events.KindConfigMap, Name: "app"})
	})
	e := engineOf(t, testOptions(), w)
	p := e.pend(w, changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt = "99", "99" }))
	e.pend(w, changeOf(func(c *events.Change) { c.Source = app }))
	got := e.outcome(t.Context(), events.VerbHeld, w, p, ReasonLimit)
	want := events.Outcome{
		Cluster: "demo", Verb: events.VerbHeld, ResourceVersion: "50", Time: written, Cause: "uid/100", Workload: w.id,
		Reason: "limit-reached", Message: ReasonLimit.Sentence(),
		Sources: []events.OutcomeSource{
			{Source: "configmap/app", Fingerprint: fp("b"), ResourceVersion: "100", Keys: []string{"password"}, Event: "uid/100"},
			{Source: "secret/db", Fingerprint: fp("b"), ResourceVersion: "99", Keys: []string{"password"}, Event: "uid/99"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
