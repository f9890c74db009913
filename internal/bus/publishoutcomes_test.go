package bus

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestPublishOutcomes(t *testing.T) {
	s := sharedServer(t)
	b, js := s.bus(), s.jetstream()
	for range 2 {
		published(t, func() error { return errors.Join(b.PublishOutcomes(t.Context(), allOutcomes()...)...) })
	}
	var changes, history []string
	for _, raw := range messages(t, js, events.StreamChanges) {
		changes = append(changes, raw.Header["ce-type"][0])
	}
	for _, raw := range messages(t, js, events.StreamHistory) {
		history = append(history, raw.Header["ce-type"][0])
	}
	if fmt.Sprint(changes) != "[dev.keyturn.rollout.failed.v1]" {
		t.Errorf("CHANGES holds %v, want the last outcome that is neither a skip nor a hold", changes)
	}
	if len(history) != len(allOutcomes()) {
		t.Errorf("HISTORY holds %v, want each outcome once", history)
	}
}

func TestTheStateOfAWorkloadExpires(t *testing.T) {
	s := sharedServer(t)
	superseded := outcome()
	superseded.Verb, superseded.Reason = events.VerbSkipped, "superseded"
	for _, o := range append(allOutcomes(), superseded) {
		o.Workload.Name = "web-" + string(o.Verb)
		mustTell(t, s.bus(), o)
	}
	var states int
	for _, raw := range messages(t, s.jetstream(), events.StreamChanges) {
		states++
		if got := raw.Header.Get("Nats-TTL"); got != "720h0m0s" {
			t.Errorf("%s expires after %q, want after 30 days", raw.Header["ce-type"][0], got)
		}
	}
	if states != 4 {
		t.Errorf("%d outcomes are states, want those that started, completed, failed and were superseded", states)
	}
	for _, raw := range messages(t, s.jetstream(), events.StreamHistory) {
		if got := raw.Header.Get("Nats-TTL"); got != "" {
			t.Errorf("in the history %s expires after %q", raw.Header["ce-type"][0], got)
		}
	}
}

func TestAnOutcomeThatIsRefusedKeepsNoOtherFromBeingPublished(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	foreign, malformed := outcome(), outcome()
	foreign.Cluster, malformed.Workload.Namespace = "other", "Shop"
	published(t, func() error {
		errs := b.PublishOutcomes(t.Context(), foreign, outcome(), malformed)
		wantReason(t, errs[0], events.ReasonForeignCluster)
		wantReason(t, errs[2], events.ReasonMalformed)
		return errs[1]
	})
	if n := len(messages(t, s.jetstream(), events.StreamChanges)); n != 1 {
		t.Errorf("CHANGES holds %d messages, want one", n)
	}
}

func TestOutcomesWithoutAnAnswerAreAllToBePublishedAgain(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	testkit.Must(t, s.jetstream().DeleteStream(t.Context(), events.StreamChanges))
	for i, err := range b.PublishOutcomes(t.Context(), allOutcomes()...) {
		skipped := allOutcomes()[i].Verb == events.VerbSkipped || allOutcomes()[i].Verb == events.VerbHeld
		if err == nil && !skipped {
			t.Errorf("%s is said to be published", allOutcomes()[i].Verb)
		}
	}
	if n := len(messages(t, s.jetstream(), events.StreamHistory)); n != len(allOutcomes()) {
		t.Errorf("HISTORY holds %d messages, want %d", n, len(allOutcomes()))
	}
}

func TestTheStateOfAWorkloadIsItsLastOutcomeOnHistory(t *testing.T) {
	no := errors.New("no answer")
	for _, tt := range []struct {
		name string
		errs [3]error
		// states has, for each publication, the index of the one that becomes the state; -1 is none.
		states [3]int
		failed int
	}{
		{name: "all are on HISTORY", states: [3]int{1, 1, -1}},
		{name: "the first is not", errs: [3]error{no, nil, nil}, states: [3]int{-1, -1, -1}, failed: 3},
		{name: "the last is not", errs: [3]error{nil, nil, no}, states: [3]int{-1, -1, -1}, failed: 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var batch []publication
			for i, verb := range []events.Verb{events.VerbStarted, events.VerbCompleted, events.VerbSkipped} {
				batch = append(batch, publication{outcome: events.Outcome{Verb: verb}, msg: &nats.Msg{Subject: "a"}, err: tt.errs[i]})
			}
			// Neither another workload nor an outcome that cannot be encoded has a part in it.
			batch = append(batch,
				publication{outcome: events.Outcome{Verb: events.VerbFailed}, msg: &nats.Msg{Subject: "b"}},
				publication{outcome: events.Outcome{Verb: events.VerbFailed}, err: no},
			)
			chooseStates(batch)
			states, failed := [3]int{-1, -1, -1}, 0
			for i, p := range batch[:3] {
				if p.err != nil {
					failed++
				}
				for j := range batch {
					if p.state == &batch[j] {
						states[i] = j
					}
				}
			}
			if states != tt.states || failed != tt.failed {
				t.Errorf("got the states %v and %d to publish again, want %v and %d", states, failed, tt.states, tt.failed)
			}
			if batch[3].state != &batch[3] || batch[4].state != nil || batch[4].err == nil {
				t.Errorf("got %+v and %+v", batch[3], batch[4])
			}
		})
	}
}
