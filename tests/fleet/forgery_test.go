package fleet

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// letIn adds a user without limits to the NATS of a cluster, before it is started: someone has taken it over.
func (h *hub) letIn(cluster string) (user string) {
	h.Helper()
	user = cluster + "-intruder"
	public := testkit.NewNATSUser(h.T, filepath.Join(h.Dir, "keys"), user)
	substitute(h.T, filepath.Join(h.Dir, cluster, "users.conf"), "\nusers: [", "\nusers: [\n  { nkey: "+public+" }")
	return user
}

// secretSubject returns the subject of a Secret of the cluster.
func (s *site) secretSubject(name string) string {
	return events.Subject(s.name, events.Source{Kind: events.KindSecret, Namespace: s.namespace, Name: name})
}

// lastOf returns the last message on a subject of CHANGES, without the headers by which a server drops duplicates.
func lastOf(t *testing.T, js jetstream.JetStream, subject string) *nats.Msg {
	t.Helper()
	stream, err := js.Stream(t.Context(), events.StreamChanges)
	testkit.Must(t, err)
	raw, err := stream.GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	maps.DeleteFunc(raw.Header, func(key string, _ []string) bool { return strings.HasPrefix(key, "Nats-") })
	return &nats.Msg{Subject: subject, Header: raw.Header, Data: raw.Data}
}

// trespass lets users of the cluster eu try to do what only another cluster, or the other program, may do.
func (h *hub) trespass(victim *cluster) {
	tests := []struct{ name, user, subject string }{
		{"a watcher says what changed in another cluster", "eu-watcher", victim.secretSubject("db")},
		{"an actuator says what became of it in another cluster", "eu-actuator", "keyturn.v1.us.rollout.default.deployment-web"},
		{"an actuator claims a change", "eu-actuator", "keyturn.v1.eu.secret.default.db"},
		{"a watcher writes the dead letters", "eu-watcher", "keyturn.deadletter.v1.eu.secret.default.db"},
		{"a watcher declares a stream", "eu-watcher", "$JS.API.STREAM.UPDATE.CHANGES"},
		{"a watcher writes into FLEET as another cluster", "eu-watcher", "keyturn.fleet.us.S.guess"},
		{"the reader of FLEET writes into it", "fleet-reader", "keyturn.v1.us.secret.default.db"},
	}
	victim.eventually("the fence has a record", func(ctx context.Context) bool {
		fence, err := victim.client.AppsV1().Deployments(victim.namespace).Get(ctx, "fence", metav1.GetOptions{})
		return err == nil && fence.Annotations["keyturn.dev/rolled"] != ""
	})
	before := victim.generations()
	for _, tt := range tests {
		h.Run(tt.name, func(t *testing.T) {
			h := h.with(t)
			refused := make(chan error, 8)
			connection := h.connect(tt.user, func(err error) { refused <- err })
			testkit.Must(t, connection.Publish(tt.subject, nil))
			if err := testkit.Receive(t, "the refusal", refused); !strings.Contains(strings.ToLower(err.Error()), "permissions violation for publish") {
				t.Errorf("got %v, want it refused", err)
			}
			testkit.Await(t, "a server says in its log that "+tt.subject+" was refused", func(context.Context) bool {
				return slices.ContainsFunc(h.outputs(), func(log string) bool {
					return strings.Contains(log, `Publish Violation`) && strings.Contains(log, tt.subject)
				})
			})
		})
	}
	h.Run("a watcher listens to the inbox of the actuator", func(t *testing.T) {
		h := h.with(t)
		refused := make(chan error, 8)
		connection := h.connect("eu-watcher", func(err error) { refused <- err })
		if _, err := connection.SubscribeSync("_INBOX_actuator.eu.>"); err != nil {
			t.Fatal(err)
		}
		if err := testkit.Receive(t, "the refusal", refused); !strings.Contains(strings.ToLower(err.Error()), "permissions violation for subscription") {
			t.Errorf("got %v, want it refused", err)
		}
	})
	victim.with(h.T).fence(before)
}

// outputs are the logs of the servers.
func (h *hub) outputs() []string {
	var all []string
	for _, server := range h.Servers {
		all = append(all, server.Process().Output())
	}
	return all
}

// forge publishes false events, about its own and another cluster, as a user with all permissions in one cluster's NATS.
func (h *hub) forge(intruder string, c, victim *cluster) {
	foreign := lastOf(h.T, h.jetstream(victim.name+"-watcher"), victim.secretSubject("shared"))
	js := h.jetstream(intruder)
	// Two events of its own; the first one is superseded.
	old := lastOf(h.T, js, c.secretSubject("db"))
	before := c.generations()
	c.rotate("db", "password")
	c.rolls(before, "web")
	before = c.generations()

	// The stream is made to take the events of others.
	stream, err := js.Stream(h.Context(), events.StreamChanges)
	testkit.Must(h, err)
	config := stream.CachedInfo().Config
	config.Subjects = []string{"keyturn.v1.>"}
	if _, err := js.UpdateStream(h.Context(), config); err != nil {
		h.Fatal(err)
	}

	// An event of another cluster, once as that cluster's and once as if it were of this one, and one that is old. It does not matter if one is there
	// twice because an ack was lost.
	foreign.Subject = victim.secretSubject("forged")
	h.publishMsg(js, foreign)
	handed := &nats.Msg{Subject: c.secretSubject("handed"), Header: foreign.Header, Data: foreign.Data}
	h.publishMsg(js, handed)
	h.publishMsg(js, old)

	b, err := bus.Open(h.Context(), h.connect(c.name+"-actuator", nil), c.name, nil)
	testkit.Must(h, err)
	// The actuator does not read the subjects of other clusters.
	const reason = events.ReasonSubjectMismatch
	c.eventually(handed.Subject+" is a dead letter", func(ctx context.Context) bool {
		letters, err := b.DeadLetters(ctx, 10)
		return err == nil && slices.ContainsFunc(letters, func(letter events.DeadLetter) bool {
			return letter.Subject == handed.Subject && letter.Reason == reason
		})
	})
	c.eventually("the refusal is counted", func(ctx context.Context) bool {
		_, metrics, err := c.actuator.Get(ctx, "metrics", "/metrics")
		return err == nil && strings.Contains(metrics, `reason="`+reason+`"`)
	})
	c.fence(before)
	// What this cluster's stream was given after the forged event is in FLEET, so that was passed over and not just late.
	h.caughtUp(c.name)
	if got := messages(h.T, h.jetstream("fleet-reader"), "FLEET", foreign.Subject); len(got) > 0 {
		h.Errorf("FLEET has taken the event of %s from %s", victim.name, c.name)
	}
}
