package tests

import (
	"context"
	"maps"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// supersedesWhatStandsThere has something else than its last event stand on the subject of the Secret db when that changes.
func (r *rig) supersedesWhatStandsThere() {
	r.Helper()
	r.changesTo("before them", func() {})
	stale := r.lastMessage("db")
	r.changesTo("then", func() {})
	complaints := func() (count int) {
		for line := range strings.Lines(r.watcher.Output()) {
			if strings.Contains(line, "cannot read an event on the stream") && strings.Contains(line, stale.Subject) {
				count++
			}
		}
		return count
	}
	earlier := complaints()
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
	if got := complaints() - earlier; got != 2 {
		r.Errorf("the watcher complained %d times of events that cannot be read, want once for each", got)
	}
	// A watcher that finds a stale one when it starts puts it right, and nothing rolls for that.
	r.changesTo("after the start", func() {
		r.publish(stale)
		r.stop(r.watcher)
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
	version := r.source(events.KindSecret, "db").GetResourceVersion()
	r.eventually("web is rolled for "+password, func(context.Context) bool {
		return strings.Contains(r.deployment("web").Annotations[recordAnnotation], "@"+version+"/")
	})
	r.awaitEndOfLastRoll("web")
	if got, want := r.generations()["web"], before+1; got != want {
		r.Fatalf("generation: got %d, want %d", got, want)
	}
}

// lastMessage returns the last message about a Secret, without the headers by which the server drops duplicates.
func (r *rig) lastMessage(secret string) *nats.Msg {
	r.Helper()
	js := r.jetstream()
	subject := events.Subject("demo", events.Source{Kind: events.KindSecret, Namespace: r.namespace, Name: secret})
	var raw *jetstream.RawStreamMsg
	natstest.Publish(r.T, func() error {
		stream, err := js.Stream(r.Context(), events.StreamChanges)
		if err != nil {
			return err
		}
		raw, err = stream.GetLastMsgForSubject(r.Context(), subject)
		return err
	})
	maps.DeleteFunc(raw.Header, func(key string, _ []string) bool { return strings.HasPrefix(key, "Nats-") })
	return &nats.Msg{Subject: subject, Header: raw.Header, Data: raw.Data}
}
