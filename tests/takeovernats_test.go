package tests

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// guessed are the durable consumers of CHANGES, by names that anybody could guess, and where they begin.
var guessed = map[string]jetstream.DeliverPolicy{"webhook-demo": jetstream.DeliverNewPolicy, "projector-demo": jetstream.DeliverAllPolicy}

const (
	ofAStore  = "keyturn.v1.demo.openbao.>"
	theSecret = "keyturn.v1.demo.secret.shop.db"
)

// publishAs stores a message as a user who may do that.
func (u natsUser) publishAs(t *testing.T, subject string) {
	t.Helper()
	testkit.Must(t, u.sends(subject, "a change")(t))
}

func TestWhoeverTakesOverTheReceiverOfAuditsClaimsChangesInStores(t *testing.T) {
	t.Parallel()
	k := newTakeover(t)
	k.startProjector()
	k.user("watcher").publishAs(t, theSecret)
	u := k.user("audit")
	tryAll(t, u.onStreams())
	tryAll(t, u.onDurables(ofAStore, guessed))
	tryAll(t, []attempt{
		{"publishes a change of a Secret", "", u.sends(theSecret, "a change")},
		{"writes a change of a Secret into the history", "", u.sends("keyturn.history.v1.demo.secret.shop.db", "a change")},
		{"publishes about a certificate", "", u.sends("keyturn.v1.demo.certificate.shop.db", "a change")},
		{"claims the cluster's name", "", u.sends(events.ClaimSubject("demo"), "a claim")},
		{"reads the event of a Secret", "", u.sends("$JS.API.DIRECT.GET.CHANGES."+theSecret, "")},
		{
			"reads all events by a request for one of a store", "",
			u.sends("$JS.API.DIRECT.GET.CHANGES.keyturn.v1.demo.openbao._.x", `{"multi_last":["keyturn.v1.>"]}`),
		},
		{"reads the events of Secrets", "", u.consumes("CHANGES", "keyturn.v1.demo.secret.>")},
		{"reads all events", "", u.consumes("CHANGES", "")},
		{"reads the history", "", u.consumes("HISTORY", "")},
		{"reads dead letters", "", u.consumes("DEADLETTERS", "")},
		{"pushes others' events out of the history by one subject", "", u.overflows("HISTORY")},
		{"pushes others' dead letters out by one subject", "", u.overflows("DEADLETTERS")},
		{"publishes a change in a store", "It is its work. The actuator rolls opted-in readers.", u.sends("keyturn.v1.demo.openbao._.x", "a change")},
		{
			"reads the names of Secrets and workloads", "NATS knows no permission for a part of what a stream says of itself. No event is in it.",
			u.sends("$JS.API.STREAM.INFO.CHANGES", `{"subjects_filter":"keyturn.v1.demo.secret.>"}`),
		},
		{
			"pushes the history out by ever new subjects", "A stream knows subjects and no publishers. An alert fires.",
			u.sends("keyturn.history.v1.demo.openbao._.new", "an event"),
		},
		{
			"pushes an object's own events out of the history, by 50,000 of its subject",
			"A stream counts the events of a subject and not whose they are. Nothing reports it: ship the history.",
			u.sends("keyturn.history.v1.demo.openbao._.x", "an event"),
		},
		{
			"makes so many consumers that the actuator can make none",
			"NATS counts the consumers of a stream and not whose they are. Remove the streams after a takeover.",
			u.crowds("CHANGES", ofAStore, k.user("actuator")),
		},
	})
}

func TestWhoeverTakesOverTheProjectorReadsChangesOfSecrets(t *testing.T) {
	t.Parallel()
	k := newTakeover(t)
	u := k.user("projector")
	const ofSecrets = "keyturn.v1.demo.secret.>"
	// It has the name of its consumer, which it can also make anew: it may have another one than this.
	pushes := func(to string) func(*testing.T) error { return u.pushesAs("projector-demo", ofSecrets, to) }
	tryAll(t, u.onStreams())
	tryAll(t, u.onDurables(ofSecrets, map[string]jetstream.DeliverPolicy{"webhook-demo": jetstream.DeliverNewPolicy}))
	tryAll(t, []attempt{
		{"has its consumer use up what the webhook asks for", "", pushes("$JS.API.CONSUMER.MSG.NEXT.CHANGES.webhook-demo")},
		{"publishes a change of a Secret", "", u.sends(theSecret, "a change")},
		{"writes a change of a Secret into the history", "", u.sends("keyturn.history.v1.demo.secret.shop.db", "a change")},
		{"claims the cluster's name", "", u.sends(events.ClaimSubject("demo"), "a claim")},
		{"reads the event of a ConfigMap", "", u.sends("$JS.API.DIRECT.GET.CHANGES.keyturn.v1.demo.configmap.shop.app", "")},
		{"reads all events", "", u.consumes("CHANGES", "")},
		{"reads the events of stores", "", u.consumes("CHANGES", ofAStore)},
		{"reads the history", "", u.consumes("HISTORY", "")},
		{"pushes others' events out of the history by one subject", "", u.overflows("HISTORY")},
		{"reports a projection", "It is its work.", u.sends("keyturn.history.v1.demo.projection.shop.widget-main", "a projection")},
	})
}

func TestWhoeverHasTheReadersKeyReadsEventsAndPublishesNone(t *testing.T) {
	t.Parallel()
	k := newTakeover(t)
	k.startProjector()
	k.user("watcher").publishAs(t, theSecret)
	u := k.user("reader")
	const reads = "It reads all events: give the key to nobody who may not see them."
	tryAll(t, u.onStreams())
	tryAll(t, u.onDurables("", guessed))
	tryAll(t, []attempt{
		{"publishes a change of a Secret", "", u.sends(theSecret, "a change")},
		{"publishes a change in a store", "", u.sends("keyturn.v1.demo.openbao._.x", "a change")},
		{"writes into the history", "", u.sends("keyturn.history.v1.demo.secret.shop.db", "a change")},
		{"claims the cluster's name", "", u.sends(events.ClaimSubject("demo"), "a claim")},
		{"reads the event of a Secret", reads, u.sends("$JS.API.DIRECT.GET.CHANGES."+theSecret, "")},
		{"reads all events", reads, u.consumes("CHANGES", "")},
		{"reads the history", reads, u.consumes("HISTORY", "")},
		{"reads dead letters", reads, u.consumes("DEADLETTERS", "")},
		{
			"makes so many consumers that the actuator can make none",
			"NATS counts the consumers of a stream and not whose they are. Remove the streams after a takeover.",
			u.crowds("CHANGES", "", k.user("actuator")),
		},
	})
}

func TestWhoeverTakesOverTheWatcherPublishesChangesAndNoOutcome(t *testing.T) {
	t.Parallel()
	k := newTakeover(t)
	k.startProjector()
	u := k.user("watcher")
	u.publishAs(t, theSecret)
	tryAll(t, u.onStreams())
	tryAll(t, u.onDurables("", guessed))
	tryAll(t, []attempt{
		{"reads the history", "", u.consumes("HISTORY", "")},
		{"reads dead letters", "", u.consumes("DEADLETTERS", "")},
		{"pushes others' events out of the history by one subject", "", u.overflows("HISTORY")},
		{"pushes others' dead letters out by one subject", "", u.overflows("DEADLETTERS")},
		{"hides that a rollout failed, by its id", "", k.hidesAFailure},
		{"publishes a change of a Secret", "It is its work. The actuator rolls opted-in readers.", u.sends(theSecret, "another change")},
		{
			"removes the state of a source", "Who publishes states can publish none. The next watcher publishes all again.",
			func(t *testing.T) error {
				msg := text(theSecret, "no event")
				msg.Header.Set(jetstream.MsgTTLHeader, "1s")
				return errorOf(u.ask(t, msg))
			},
		},
		{
			"fills CHANGES beyond every budget", "The publisher keeps the budgets. No state is discarded: new ones wait until there is room.",
			u.sends("keyturn.v1.demo.secret.nowhere.new", "no event"),
		},
		{"claims the cluster's name, so that the programs end", "", k.endsThePrograms},
	})
}

// consumes is an attempt to make a consumer of what matches a filter.
func (u natsUser) consumes(stream, filter string) func(t *testing.T) error {
	return func(t *testing.T) error {
		return errorOf(u.ask(t, requestFor(t, stream, "", jetstream.ConsumerConfig{
			Durable: "reads", FilterSubject: filter, AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: time.Minute,
		})))
	}
}

// hidesAFailure has the watcher take the id of an outcome before the actuator publishes it, and reads the history as a person does.
func (k *takeover) hidesAFailure(t *testing.T) error {
	outcome := events.Outcome{
		Cluster: "demo", Verb: events.VerbFailed, ResourceVersion: "4720", Time: time.Now().UTC(), Cause: "a-change", Revision: "r1-2f6e9a53",
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web", UID: "aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22"},
		Reason:   "deadline-exceeded", Generation: 7, StartedAt: time.Now().UTC(),
	}
	forged := text("keyturn.history.v1.demo.secret.shop.other", "no event")
	forged.Header.Set(jetstream.MsgIDHeader, "demo/"+outcome.ID())
	if _, err := k.user("watcher").ask(t, forged); err != nil {
		return err
	}
	connection := k.user("actuator").connect(t)
	defer connection.Close()
	natstest.Publish(t, func() error {
		b, err := bus.Open(t.Context(), connection, "demo", nil)
		if err != nil {
			return err
		}
		return errors.Join(b.PublishOutcomes(t.Context(), outcome)...)
	})
	subject := "$JS.API.DIRECT.GET.HISTORY." + events.HistorySubject(outcome.Subject())
	return unless(errorOf(k.user("reader").ask(t, text(subject, ""))), "the history has the failure")
}

// endsThePrograms claims the name as the watcher for another cluster, and starts both programs anew.
func (k *takeover) endsThePrograms(t *testing.T) error {
	connection := k.user("watcher").connect(t)
	defer connection.Close()
	natstest.Publish(t, func() error {
		b, err := bus.Open(t.Context(), connection, "demo", nil)
		if err != nil {
			return err
		}
		return b.Claim(t.Context(), "0d3c1b0f-6c1d-4f6e-9a53-5f0c2a4e7a11", "")
	})
	connection.Close()
	testkit.Must(t, k.actuator.Stop(patience))
	k.launchActuator()
	k.launchWatcher()
	ctx, stop := running.WithTimeout(t.Context(), patience)
	defer stop()
	for _, program := range []*programs.Program{k.actuator, k.watcher} {
		if err := program.Ready(ctx); err != nil {
			t.Log(err)
			return nil
		}
	}
	return fmt.Errorf("%w: both programs are ready", errRefused)
}
