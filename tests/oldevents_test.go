package tests

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

func TestAnOldEventIsSkippedWithAReason(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.start()
	r.changesTo("two", func() {})
	earlier := r.lastMessage("db")
	r.changesTo("three", func() {})
	newest := r.lastMessage("db")
	for _, old := range []struct {
		reason string
		msg    *nats.Msg
	}{{"stale", earlier}, {"already-rolled", newest}} {
		before := r.generations()
		r.publish(old.msg)
		r.eventually("it is skipped as "+old.reason, func(context.Context) bool {
			return slices.ContainsFunc(r.outcomes(), func(o events.Outcome) bool {
				return o.Verb == events.VerbSkipped && o.Reason == old.reason && o.Workload.Name == "web"
			})
		})
		r.quiet()
		if now := r.generations(); !maps.Equal(now, before) {
			t.Errorf("generations: got %v, want %v as before", now, before)
		}
	}
	if letters, err := r.connect().DeadLetters(t.Context(), 10); err != nil || len(letters) > 0 {
		t.Errorf("dead letters: got %v, %v, want none", letters, err)
	}
}

func TestAChangeSupersedesWhateverStandsOnItsSubject(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.start()
	r.changesTo("two", func() {})
	stale := r.lastMessage("db")
	r.changesTo("three", func() {})
	for _, tt := range []struct {
		name string
		msg  *nats.Msg
	}{
		{"a stale event", stale},
		{"no event", &nats.Msg{Subject: stale.Subject, Data: []byte("nothing")}},
		{"the event of another source", &nats.Msg{Subject: stale.Subject, Header: r.message(r.forge("other")).Header, Data: []byte("{}")}},
	} {
		r.sub(tt.name, func(r *rig) {
			r.changesTo("after "+tt.name, func() {
				r.publish(tt.msg)
				r.quiet()
			})
		})
	}
	if complaints := strings.Count(r.watcher.Output(), "cannot read an event on the stream"); complaints != 2 {
		t.Errorf("the watcher complained %d times of events that cannot be read, want once for each", complaints)
	}
	// A watcher that finds a stale one when it starts puts it right, and nothing rolls for that.
	r.changesTo("after the start", func() {
		r.publish(stale)
		if err := r.watcher.Stop(patience); err != nil {
			t.Fatalf("stopping the watcher: %v", err)
		}
		r.startWatcher()
	})
}

// changesTo changes the password of the Secret db and waits until web has rolled. Together with the change before it, web must
// roll once, because the events of one source are processed in order.
func (r *rig) changesTo(password string, after func()) {
	r.Helper()
	before := r.generations()["web"]
	after()
	r.secret("db", map[string]string{"password": password})
	r.eventually("web is rolled for "+password, func(context.Context) bool { return r.generations()["web"] > before })
	r.quiet()
	if got, want := r.generations()["web"], before+1; got != want {
		r.Fatalf("generation: got %d, want %d", got, want)
	}
}

// lastMessage returns the last message about a Secret, without the headers by which the server drops duplicates.
func (r *rig) lastMessage(secret string) *nats.Msg {
	r.Helper()
	stream, err := r.jetstream().Stream(r.Context(), events.StreamChanges)
	if err != nil {
		r.Fatal(err)
	}
	subject := events.Subject("demo", events.Source{Kind: events.KindSecret, Namespace: r.namespace, Name: secret})
	raw, err := stream.GetLastMsgForSubject(r.Context(), subject)
	if err != nil {
		r.Fatal(err)
	}
	maps.DeleteFunc(raw.Header, func(key string, _ []string) bool { return strings.HasPrefix(key, "Nats-") })
	return &nats.Msg{Subject: subject, Header: raw.Header, Data: raw.Data}
}

func (r *rig) publish(msg *nats.Msg) {
	r.Helper()
	if _, err := r.jetstream().PublishMsg(r.Context(), msg); err != nil {
		r.Fatal(err)
	}
}
