package tests

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

func TestASinkIsToldOfARolloutAndOneThatHangsDelaysNothing(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	asked := make(chan struct{}, 100)
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-over
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(over) })
	box := newMailbox(t)
	config := filepath.Join(t.TempDir(), "notify.yaml")
	sinks := "sinks:\n" +
		"- {name: hanging, type: webhook, url: '" + hanging.URL + "', verbs: [started, completed]}\n" +
		"- {name: box, type: webhook, url: '" + box.URL + "/in', verbs: [started, completed]}\n"
	if err := os.WriteFile(config, []byte(sinks), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--notify-config", config}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbCompleted)
	r.eventually("the sink has both messages", func(context.Context) bool { return len(box.received()) >= 2 })
	<-asked

	type message struct{ Cluster, What, Verb, Kind, Namespace, Name, Reason string }
	var got []message
	for _, p := range box.received() {
		var m message
		if err := json.Unmarshal([]byte(p.Body), &m); err != nil || p.Path != "/in" || !strings.Contains(p.Body, `"sources":["secret/db"]`) {
			t.Errorf("posted to %s: %s, %v", p.Path, p.Body, err)
		}
		got = append(got, m)
	}
	want := []message{
		{"demo", "Rollout", "started", "deployment", r.namespace, "web", "content-changed"},
		{"demo", "Rollout", "completed", "deployment", r.namespace, "web", "rolled-out"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	// A message is counted once the sink has answered.
	r.eventually("the metrics have both messages", func(context.Context) bool {
		return r.series(r.actuator, "keyturn_notifications_total", `sink="box"`, `result="sent"`) == "2"
	})
}

// mailbox is a service that messages are posted to.
type mailbox struct {
	*httptest.Server
	mu    sync.Mutex
	posts []post
}

// post is a request to a mailbox.
type post struct{ Path, Body string }

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := &mailbox{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.posts = append(m.posts, post{r.URL.Path, string(body)})
	}))
	t.Cleanup(m.Close)
	return m
}

// received returns what was posted, in its order.
func (m *mailbox) received() []post {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.posts)
}
