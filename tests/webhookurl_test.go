package tests

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

func TestAWebhookIsCalledInsteadOfRollingAndLosesNoChange(t *testing.T) {
	t.Parallel()
	box := newMailbox(t, http.StatusServiceUnavailable)
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--webhook-url", box.URL + "/password-of-the-hook"}})
	r.secret("db", map[string]string{"password": "one"})
	r.secret("mail", map[string]string{"password": "one"})
	r.configMap("app", map[string]string{"level": "info"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.start()
	bus := r.connect()
	for _, source := range []events.Source{
		{Kind: events.KindSecret, Namespace: r.namespace, Name: "db"},
		{Kind: events.KindSecret, Namespace: r.namespace, Name: "mail"},
		{Kind: events.KindConfigMap, Namespace: r.namespace, Name: "app"},
	} {
		r.eventually("the watcher knows "+source.String(), func(ctx context.Context) bool {
			_, err := bus.Last(ctx, events.Subject(bus.Cluster(), source))
			return err == nil
		})
	}
	if got := len(box.received()); got != 0 {
		t.Errorf("%d posts for sources that have not changed", got)
	}

	r.set(events.KindSecret, "db", "password", "two")
	r.eventually("the webhook is called, and called again", func(context.Context) bool { return len(box.received()) >= 2 })
	r.stop(r.actuator)
	if strings.Contains(r.actuator.Output(), "password-of-the-hook") {
		t.Error("the address is in the log")
	}
	box.answer(http.StatusNoContent)
	failed := len(box.received())
	r.set(events.KindConfigMap, "app", "level", "debug") // while nobody calls, and NATS is down
	r.startActuator()
	r.set(events.KindSecret, "mail", "password", "two") // no workload reads it
	pending := func(ctx context.Context) int {
		lag, err := bus.Lag(ctx, "webhook-"+r.programs.Cluster())
		if err != nil {
			return -1
		}
		return int(lag.Pending) + lag.AckPending
	}
	r.eventually("the webhook is called for each change", func(ctx context.Context) bool {
		return len(box.received())-failed >= 3 && pending(ctx) == 0
	})
	posts := box.received()[failed:]
	if len(posts) != 3 {
		t.Errorf("%d posts, want one for each of three changes", len(posts))
	}
	for _, p := range posts {
		if p != (post{"/password-of-the-hook", "application/json", `{"webhook":"update successful"}`}) {
			t.Errorf("posted %+v", p)
		}
	}
	if got := r.generations()["web"]; got != 1 {
		t.Errorf("generation of web: got %d, want 1: nothing is rolled", got)
	}
}
