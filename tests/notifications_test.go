package tests

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestASinkIsToldOfARollout(t *testing.T) {
	t.Parallel()
	posted := make(chan string, 100) // each with its path in front
	box := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // One that is cut off is not the expected one.
		posted <- r.Method + " " + r.URL.Path + " " + string(body)
	}))
	t.Cleanup(box.Close)
	config := filepath.Join(t.TempDir(), "notify.yaml")
	sinks := "sinks: [{name: box, type: webhook, url: '" + box.URL + "/in', verbs: [started, completed]}]\n"
	testkit.Must(t, os.WriteFile(config, []byte(sinks), 0o600))
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--notify-config", config}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.start()
	js := r.jetstream()
	r.eventually("the sink has its consumer, which begins with the next outcome", func(ctx context.Context) bool {
		_, err := js.Consumer(ctx, events.StreamHistory, "notify-demo_box")
		return err == nil
	})
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbCompleted)
	type message struct{ Cluster, What, Verb, Kind, Namespace, Name, Reason string }
	var got []message
	for range 2 {
		text := testkit.Receive(t, "a message in the box", posted)
		body, isIn := strings.CutPrefix(text, "POST /in ")
		var m message
		if err := json.Unmarshal([]byte(body), &m); err != nil || !isIn || !strings.Contains(body, `"sources":["secret/db"]`) {
			t.Errorf("posted: %s, %v", text, err)
		}
		got = append(got, m)
	}
	want := []message{
		{"demo", "Rollout", "started", "deployment", r.namespace, "web", "content-changed"},
		{"demo", "Rollout", "completed", "deployment", r.namespace, "web", "rolled-out"},
	}
	testkit.WantEqual(t, "messages", want, got)
	// A message is counted once the sink has answered.
	r.eventually("the metrics have both messages", func(context.Context) bool {
		return r.series(r.actuator, "keyturn_notifications_total", `sink="box"`, `result="sent"`) == "2"
	})
	if len(posted) > 0 {
		t.Errorf("one more is posted: %s", <-posted)
	}
}
