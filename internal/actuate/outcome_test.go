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

// publisherOf is a publisher of the tests' cluster.
func publisherOf(t *testing.T, bus *events.Bus) *publisher {
	t.Helper()
	a, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	return newPublisher(bus, a.log, a.metrics)
}

// reportsOf are reports of outcomes.
func reportsOf(outcomes ...events.Outcome) []report {
	var reports []report
	for _, outcome := range outcomes {
		reports = append(reports, report{outcome: outcome})
	}
	return reports
}

// publishing has the publisher publish reports, and returns those that are finished.
func publishing(t *testing.T, p *publisher, reports []report) []report {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() { p.run(t.Context()) })
	p.batches <- reports
	done := <-p.published
	p.close(t.Context(), nil)
	running.Wait()
	return done
}

func TestOutcomesArePublishedUntilNoneIsLeft(t *testing.T) {
	p := publisherOf(t, busOf(t))
	refused := outcomeOf("refused")
	refused.Cluster = "another"
	if done := publishing(t, p, reportsOf(outcomeOf("first"), refused, outcomeOf("last"))); len(done) != 3 {
		t.Errorf("%d outcomes are done with, want all of them, the one that is refused too", len(done))
	}
	for _, name := range []string{"first", "last"} {
		stored, err := p.bus.Last(t.Context(), events.OutcomeSubject("demo", outcomeOf(name).Workload))
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
	bus, err := events.Open(t.Context(), nc, "demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := publisherOf(t, bus)
	if err := js.DeleteStream(t.Context(), events.StreamChanges); err != nil {
		t.Fatal(err)
	}
	done, left := p.try(t.Context(), reportsOf(outcomeOf("web")))
	if len(done) != 0 || len(left) != 1 {
		t.Fatalf("%d are done with and %d left, where one stream is missing", len(done), len(left))
	}
	if err := events.Declare(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	if done, left = p.try(t.Context(), left); len(done) != 1 || len(left) != 0 {
		t.Errorf("%d are done with and %d left, where the stream is back", len(done), len(left))
	}
}

func TestThePublisherEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	publisherOf(t, nil).run(ctx)
}

func TestAnEventIsDoneWithWhenItsRolloutsArePublished(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	l := loopOf(t, testOptions(), w)
	event := eventOf(changeOf(nil))
	event.open = 1 // so that it is not finished: there is no message that it came with
	p := newPending(w.Key(), written)
	p.add(event, nil)
	r, err := newRoll(deployments, w, []plan.Decision{{Source: db, Reason: plan.Changed}}, p)
	if err != nil {
		t.Fatal(err)
	}
	started := startedOutcome(l.completion.outcomes.started(t.Context(), r), w, written)
	l.completion.finish(t.Context(), patchResult{roll: r, after: w, started: started})
	if event.open != 2 || l.outbox.unpublished != 1 || len(l.outbox.waiting) == 0 || l.outbox.waiting[0].outcome.Verb != events.VerbStarted {
		t.Fatalf("%d workloads are open and %d unpublished after the patch, with %+v", event.open, l.outbox.unpublished, l.outbox.waiting)
	}
	l.confirm(t.Context(), l.outbox.waiting)
	if event.open != 1 || l.outbox.unpublished != 0 {
		t.Errorf("%d workloads are open and %d unpublished after it was published", event.open, l.outbox.unpublished)
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
		{"patches are under way for long", 1, true, outboxPatience, true},
		{"as many wait as there may", outboxSize, true, 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now := written
			o := newOutbox(func() time.Time { return now })
			for range test.waiting {
				o.add(report{outcome: outcomeOf("web")})
			}
			now = written.Add(test.after)
			if got := o.due(test.patching); got != test.want {
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
		l := loopOf(t, testOptions())
		for range outboxSize {
			l.outbox.add(report{outcome: outcomeOf("web")})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { l.work(ctx) })
		l.deliveries <- &events.Delivery{Change: changeOf(nil)}
		synctest.Wait()
		if len(l.deliveries) != 1 {
			t.Error("an event is taken although as many outcomes wait as there may")
		}
		cancel()
		running.Wait()
	})
}

func TestTheProblemsOfAWorkloadAreToldOnceForEachWording(t *testing.T) {
	options := testOptions()
	kube := newKubeEvents(options, workload.BuiltIn(), options.Logger, nil)
	reported := newProblems(options.Logger, kube)
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
		reported.report(t.Context(), step.w)
		got := ""
		if len(kube.queue) > 0 {
			event := <-kube.queue
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
	p := pendingOf(w, changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt = "99", "99" }), changeOf(func(c *events.Change) { c.Source = app }))
	outcomes := outcomes{cluster: "demo", now: testOptions().Now}
	got := outcomes.held(t.Context(), w, p, decisionsOf(w, p), plan.Limit)
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
