package actuate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/events/embedded"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// busOf is a bus of the tests' cluster on a server of its own.
func busOf(t *testing.T) *events.Bus {
	t.Helper()
	return busesOf(t, testOptions().Cluster)[0]
}

// busesOf are the buses of several clusters on one server.
func busesOf(t *testing.T, clusters ...string) []*events.Bus {
	t.Helper()
	nc, _ := streamsOf(t)
	buses := make([]*events.Bus, len(clusters))
	for i, cluster := range clusters {
		var err error
		if buses[i], err = events.Open(t.Context(), nc, cluster, nil); err != nil {
			t.Fatal(err)
		}
	}
	return buses
}

// streamsOf declares the streams on a server of the test's own.
func streamsOf(t *testing.T) (*nats.Conn, jetstream.JetStream) {
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
	return nc, js
}

func outcomeOf(name string) events.Outcome {
	return events.Outcome{
		Cluster: "demo", Verb: events.VerbFailed, ResourceVersion: "50", Time: written, Cause: "uid/100", Reason: "timed-out",
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: name, UID: "uid-" + name},
	}
}

// publishing has the reporter publish what waits, and gives what it says is done with.
func publishing(t *testing.T, r *reporter) []report {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() { r.run(t.Context()) })
	r.batches <- r.waiting
	r.taken()
	done := <-r.published
	r.close(t.Context())
	running.Wait()
	return done
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
	if done := publishing(t, r); len(done) != 3 {
		t.Errorf("%d outcomes are done with, want all of them, the one that is refused too", len(done))
	}
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

func TestAnOutcomeIsTriedUntilItIsPublished(t *testing.T) {
	nc, js := streamsOf(t)
	r := engineOf(t, testOptions()).reporter
	var err error
	if r.bus, err = events.Open(t.Context(), nc, "demo", nil); err != nil {
		t.Fatal(err)
	}
	r.report(t.Context(), outcomeOf("web"))
	if err := js.DeleteStream(t.Context(), events.StreamChanges); err != nil {
		t.Fatal(err)
	}
	done, left := r.try(t.Context(), r.waiting)
	if len(done) != 0 || len(left) != 1 {
		t.Fatalf("%d are done with and %d left, where one stream is missing", len(done), len(left))
	}
	if err := events.Declare(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	if done, left = r.try(t.Context(), left); len(done) != 1 || len(left) != 0 {
		t.Errorf("%d are done with and %d left, where the stream is back", len(done), len(left))
	}
}

func TestTheReporterEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	engineOf(t, testOptions()).reporter.run(ctx)
}

func TestAnEventIsDoneWithWhenItsRolloutsArePublished(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	e := engineOf(t, testOptions(), w)
	ticket := ticketOf(t, changeOf(nil))
	ticket.open = 2 // so that it is not settled: there is no message that it came with
	p := e.pend(w, ticket.delivery.Change)
	p.claims[db].tickets = append(p.claims[db].tickets, ticket)
	r, err := newRoll(deployments, w, []plan.Decision{{Source: db, Reason: plan.Changed}}, p.claims)
	if err != nil {
		t.Fatal(err)
	}
	r.pending, r.ctx = p, t.Context()
	e.finish(t.Context(), patchResult{roll: r, after: w, started: e.options.started(t.Context(), r, w)})
	if ticket.open != 2 || e.untold != 1 || len(e.reporter.waiting) == 0 || e.reporter.waiting[0].outcome.Verb != events.VerbStarted {
		t.Fatalf("%d workloads are open and %d untold after the patch, with %+v", ticket.open, e.untold, e.reporter.waiting)
	}
	e.told(t.Context(), e.reporter.waiting)
	if ticket.open != 1 || e.untold != 0 {
		t.Errorf("%d workloads are open and %d untold after it was published", ticket.open, e.untold)
	}
}

func TestOutcomesLetPatchesGoFirst(t *testing.T) {
	tests := []struct {
		name     string
		waiting  int
		patching bool
		after    time.Duration
		want     bool
	}{
		{"nothing is to be told", 0, false, 0, false},
		{"no patch is under way", 1, false, 0, true},
		{"a patch is under way", 1, true, 0, false},
		{"patches are under way for long", 1, true, reportPatience, true},
		{"as many wait as there may", reportQueue, true, 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := engineOf(t, testOptions()).reporter
			for range test.waiting {
				r.await(report{outcome: outcomeOf("web")})
			}
			if got := r.due(written.Add(test.after), test.patching); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
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

func TestNothingIsDecidedWhileTooManyOutcomesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engineOf(t, testOptions())
		for range reportQueue {
			e.reporter.await(report{outcome: outcomeOf("web")})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { e.loop(ctx) })
		e.deliveries <- &events.Delivery{Change: changeOf(nil)}
		synctest.Wait()
		if len(e.deliveries) != 1 {
			t.Error("an event is taken although as many outcomes wait as there may")
		}
		cancel()
		running.Wait()
	})
}

func TestTheProblemsOfAWorkloadAreToldOnceForEachWording(t *testing.T) {
	e := engineOf(t, testOptions())
	problem := func(texts ...string) *workload.Workload {
		w := workloadOf(t, "auto", wholeDB, nil)
		for _, text := range texts {
			w.Problems = append(w.Problems, errors.New(text))
		}
		return w
	}
	for _, step := range []struct {
		name string
		w    *workload.Workload
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
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Refs = append(w.Refs, workload.Reference{Kind: events.KindConfigMap, Name: "app"})
	})
	e := engineOf(t, testOptions(), w)
	p := e.pend(w, changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt = "99", "99" }))
	e.pend(w, changeOf(func(c *events.Change) { c.Source = app }))
	got := e.outcome(t.Context(), events.VerbHeld, w, p, plan.Limit)
	want := events.Outcome{
		Cluster: "demo", Verb: events.VerbHeld, ResourceVersion: "50", Time: written, Cause: "uid/100", Workload: w.ID,
		Reason: "limit-reached", Message: plan.Limit.Sentence(),
		Sources: []events.OutcomeSource{
			{Source: "configmap/app", Fingerprint: fp("b"), ResourceVersion: "100", Keys: []string{"password"}, Event: "uid/100"},
			{Source: "secret/db", Fingerprint: fp("b"), ResourceVersion: "99", Keys: []string{"password"}, Event: "uid/99"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
