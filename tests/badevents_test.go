package tests

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// dialNATS connects to the NATS of the programs.
func (r *rig) dialNATS(options ...nats.Option) (*nats.Conn, error) {
	if ca := r.programs.NATSCA(); ca != "" {
		options = append(options, nats.RootCAs(ca))
	}
	return nats.Connect(r.programs.NATSURL(), options...)
}

// jetstream connects to the bus as anyone with the rights could.
func (r *rig) jetstream() jetstream.JetStream {
	r.Helper()
	connection, err := r.dialNATS(nats.Timeout(patience))
	testkit.Must(r, err)
	r.Cleanup(connection.Close)
	// A request waits for half of the patience, so that one that is lost is repeated.
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(patience/2))
	testkit.Must(r, err)
	return js
}

// publish publishes a message, also one that an earlier call has published. While it has no answer it is sent again, and stored once all the same.
func (r *rig) publish(msg *nats.Msg) {
	r.Helper()
	js, id := r.jetstream(), rand.Text()
	err := natstest.Answered(r.T, func() error {
		_, err := js.PublishMsg(r.Context(), msg, jetstream.WithMsgID(id))
		return err
	})
	if err != nil {
		r.Fatalf("publishing on %s: %v", msg.Subject, err)
	}
}

// deadLetters returns the newest dead letters, at most a hundred.
func (r *rig) deadLetters() []events.DeadLetter {
	r.Helper()
	b := r.connect()
	var letters []events.DeadLetter
	natstest.Publish(r.T, func() (err error) {
		letters, err = b.DeadLetters(r.Context(), 100)
		return err
	})
	return letters
}

// forge makes an event of a Secret that changed, as a watcher would.
func (r *rig) forge(name string) events.Change {
	const version = "900000000"
	fingerprint := "k00000000:" + strings.Repeat("2", 32)
	return events.Change{
		Cluster: "demo", Source: events.Source{Kind: events.KindSecret, Namespace: r.namespace, Name: name},
		Verb: events.VerbChanged, UID: "11111111-2222-3333-4444-555555555555", ResourceVersion: version, Time: time.Now().UTC(),
		Fingerprint: fingerprint, Previous: "k00000000:" + strings.Repeat("1", 32), ChangedAt: version,
		Keys: map[string]events.Key{"password": {Fingerprint: fingerprint, ChangedAt: version}}, Changed: []string{"password"},
	}
}

func (r *rig) message(change events.Change) *nats.Msg {
	r.Helper()
	encoded, err := change.Encode()
	testkit.Must(r, err)
	header, data, err := encoded.Message()
	testkit.Must(r, err)
	return &nats.Msg{Subject: encoded.Subject, Header: header, Data: data}
}

func TestABadEventIsRefusedWithAReasonAndRollsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	// Whatever Secret an event is about, it rolls this one if it is taken.
	r.deploy(r.reading("web", "db", 1, map[string]string{"keyturn.dev/roll-on": "secret/*"}))
	r.start()
	r.step("a bad event is refused with a reason and rolls nothing", (*rig).refusesBadEvents)
	r.step("a change supersedes whatever stands on its subject", (*rig).supersedesWhatStandsThere)
}

// refusesBadEvents publishes what no watcher publishes. There is no dead letter before.
func (r *rig) refusesBadEvents() {
	r.Helper()
	js := r.jetstream()

	// What a bad message has in it must not be quoted to people.
	marker := string(secretText(r.T))
	tests := []struct {
		name   string
		reason string
		alter  func(*nats.Msg)
	}{
		{"no-event", "malformed", func(m *nats.Msg) { m.Header, m.Data = nil, []byte(marker) }},
		{"no-json", "malformed", func(m *nats.Msg) { m.Data = []byte(marker) }},
		{"another-type-in-json", "malformed", func(m *nats.Msg) { m.Data = []byte(`{"keys":"` + marker + `"}`) }},
		{"another-id", "malformed", func(m *nats.Msg) { m.Header.Set("ce-id", marker) }},
		{"plain-hash", "malformed", func(m *nats.Msg) { m.Header.Set("ce-fingerprint", strings.Repeat("a", 64)) }},
		{"structured", "structured-mode", func(m *nats.Msg) { m.Header.Set("content-type", "application/cloudevents+json") }},
		{"large-data", "oversized", func(m *nats.Msg) { m.Data = []byte(strings.Repeat(" ", events.MaxEventSize+1)) }},
		{"large-header", "oversized", func(m *nats.Msg) { m.Header.Set("ce-more", strings.Repeat("x", events.MaxHeaderSize)) }},
		{"later-type", "unknown-version", func(m *nats.Msg) { m.Header.Set("ce-type", "dev.keyturn.secret.changed.v2") }},
		{"unknown-verb", "unknown-type", func(m *nats.Msg) { m.Header.Set("ce-type", "dev.keyturn.secret.exploded.v1") }},
		{"foreign-cluster", "subject-mismatch", func(m *nats.Msg) {
			change := r.forge("foreign-cluster")
			change.Cluster = "other"
			m.Header = r.message(change).Header
		}},
		{"another-object", "subject-mismatch", func(m *nats.Msg) { m.Header = r.message(r.forge("db")).Header }},
		{"another-namespace", "subject-mismatch", func(m *nats.Msg) {
			change := r.forge("another-namespace")
			change.Source.Namespace = "default"
			m.Header = r.message(change).Header
		}},
	}
	before := r.generations()
	var want []string
	for _, tt := range tests {
		msg := r.message(r.forge(tt.name))
		tt.alter(msg)
		r.publish(msg)
		want = append(want, tt.reason+" "+msg.Subject)
	}
	// What the stream itself does not take never gets that far, and another cluster's events are not delivered.
	huge := r.message(r.forge("huge"))
	huge.Data = []byte(strings.Repeat(" ", 600<<10))
	if err := natstest.Answered(r.T, func() error {
		_, err := js.PublishMsg(r.Context(), huge)
		return err
	}); err == nil {
		r.Error("the stream took 600 kB")
	}
	foreign := r.forge("db")
	foreign.Cluster = "other"
	msg := r.message(foreign)
	msg.Subject = events.Subject("other", foreign.Source)
	r.publish(msg)
	r.eventually("each of them is a dead letter", func(context.Context) bool { return len(r.deadLetters()) >= len(tests) })
	r.quiet()
	if now := r.generations(); !maps.Equal(now, before) {
		r.Errorf("generations: got %v, want %v as before", now, before)
	}

	var got []string
	for _, letter := range r.deadLetters() {
		got = append(got, letter.Reason+" "+letter.Subject)
		if letter.Error == "" {
			r.Errorf("the dead letter of %s says no more than %s", letter.Subject, letter.Reason)
		}
	}
	slices.Sort(want)
	testkit.WantEqual(r, "dead letters", want, slices.Sorted(slices.Values(got)))
	table := r.ask("dead-letters")
	if lines := strings.Count(r.ask("dead-letters", "--limit", "3"), "\n"); lines != 4 {
		r.Errorf("dead-letters --limit 3: got %d lines, want 4", lines)
	}
	h := &haystack{}
	h.add("the log of the actuator", []byte(r.actuator.Output()))
	h.add("the dead-letters command", []byte(table))
	for _, leak := range h.leaks([]byte(marker)) {
		r.Errorf("what a bad message held: %s", leak)
	}
	_, metrics, err := r.actuator.Get(r.Context(), "metrics", "/metrics")
	if err != nil || !strings.Contains(metrics, `reason="oversized"`) || !strings.Contains(metrics, `reason="unknown-version"`) {
		r.Errorf("metrics: %v; want the reasons of refusals counted, got\n%s", err, metrics)
	}

	r.sub("a good event after them rolls", func(r *rig) { r.changesTo("after them", func() {}) })
	r.sub("an event that is right in all of this would have rolled", func(r *rig) {
		r.publish(r.message(r.forge("right")))
		r.eventually("it is rolled", func(context.Context) bool { return r.seen()["deployment/web"] == before["web"]+2 })
	})
}
