package tests

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// During an upgrade, programs of two versions run side by side. No later version exists yet, so the test publishes in the
// place of its watcher. It checks the promises of docs/compatibility.md.
func TestAProgramThatMeetsALaterVersionDoesWhatIsPromised(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.secret("mail", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.deploy(r.reading("post", "mail", 1, nil))
	r.start()
	r.changesTo("two", func() {})
	// The watcher is upgraded before the actuator, which is the wrong order.
	if err := r.watcher.Stop(patience); err != nil {
		t.Fatal(err)
	}
	before := r.generations()

	r.sub("an event of a later version is kept as a dead letter, and rolls nothing", func(r *rig) {
		r.secret("db", map[string]string{"password": "three"})
		later := r.lastMessage("db")
		later.Header.Set("ce-type", "dev.keyturn.secret.changed.v2")
		later.Header.Set("ce-id", "another/form/of/id")
		later.Data = []byte(`{"entirely":["different"]}`)
		r.publish(later)
		r.eventually("it is a dead letter", func(ctx context.Context) bool {
			letters, err := r.connect().DeadLetters(ctx, 10)
			return err == nil && len(letters) == 1 && letters[0].Reason == events.ReasonUnknownVersion && letters[0].Subject == later.Subject &&
				string(letters[0].Data) == string(later.Data)
		})
	})
	r.sub("a verb that is not known is one too, and a kind that is not known is not asked for", func(r *rig) {
		verb := r.message(r.forge("other"))
		verb.Header.Set("ce-type", "dev.keyturn.secret.renamed.v1")
		r.publish(verb)
		r.publish(&nats.Msg{Subject: "keyturn.v1.demo.pushsecret." + r.namespace + ".db", Header: verb.Header, Data: verb.Data})
		r.eventually("it is a dead letter", func(context.Context) bool { return len(r.deadLetters()) > 1 })
		r.quiet()
		letters, err := r.connect().DeadLetters(r.Context(), 10)
		if err != nil || len(letters) != 2 || letters[1].Reason != events.ReasonUnknownType || letters[1].Subject != verb.Subject {
			r.Errorf("dead letters: got %+v, %v, want one more, for the verb", letters, err)
		}
	})
	if now := r.generations(); !maps.Equal(now, before) {
		t.Fatalf("generations: got %v, want %v as before", now, before)
	}
	r.sub("an attribute and a field that are not known are passed over", func(r *rig) {
		more := r.message(r.forge("mail"))
		more.Header.Set("ce-region", "eu")
		var data map[string]any
		if err := json.Unmarshal(more.Data, &data); err != nil {
			r.Fatal(err)
		}
		data["rotation"] = map[string]any{"policy": "monthly"}
		var err error
		if more.Data, err = json.Marshal(data); err != nil {
			r.Fatal(err)
		}
		r.publish(more)
		r.eventually("post is rolled", func(context.Context) bool { return r.seen()["deployment/post"] == before["post"]+1 })
	})
	r.sub("the earlier watcher goes on after the later one, and by its record web is rolled for what only that has said", func(r *rig) {
		r.startWatcher()
		r.quiet()
		if got := r.generations()["web"]; got != before["web"]+1 {
			r.Errorf("generation of web: got %d, want %d", got, before["web"]+1)
		}
		if !strings.Contains(r.watcher.Output(), "cannot read an event on the stream") {
			r.Error("the watcher says nothing of the event that it cannot read")
		}
		if got := r.lastChange(events.Source{Kind: events.KindSecret, Name: "db"}); got.Verb != events.VerbObserved {
			r.Errorf("the last event of db: got %s, want it observed anew", got.Verb)
		}
		r.changesTo("four", func() {})
	})
}
