package testkit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Misdirection tries to make JetStream send its responses to subjects on which the requesting user may not publish. The server checks only the
// subject of a request, not its reply subject.
type Misdirection struct {
	Cluster string
	// Owner is the user of the streams' account who has declared them, and who may do everything that the test needs.
	Owner jetstream.JetStream

	ack string
}

// NewMisdirection publishes a change of a Secret as the watcher, and makes the webhook's consumer hold it.
func NewMisdirection(t testing.TB, cluster string, owner, watcher jetstream.JetStream) *Misdirection {
	t.Helper()
	m := &Misdirection{Cluster: cluster, Owner: owner}
	// Each server of a cluster learns separately where the streams are, and until then nobody responds for them.
	var err error
	why := func() string { return fmt.Sprint(err) }
	Eventually(t, "the watcher publishes", func() bool {
		_, err = watcher.Publish(t.Context(), m.subject("v1", "secret.shop.db"), []byte("a change"))
		return err == nil
	}, why)
	var consumer jetstream.Consumer
	Eventually(t, "the owner makes the webhook's consumer", func() bool {
		consumer, err = owner.CreateOrUpdateConsumer(t.Context(), "CHANGES", jetstream.ConsumerConfig{
			Durable: "webhook-" + cluster, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour,
		})
		return err == nil
	}, why)
	var msg jetstream.Msg
	Eventually(t, "the webhook's consumer holds the change", func() bool {
		msg, err = consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
		return err == nil
	}, why)
	m.ack = msg.Reply()
	return m
}

func (m *Misdirection) subject(family, rest string) string {
	return fmt.Sprintf("keyturn.%s.%s.%s", family, m.Cluster, rest)
}

// Try sends, as the given user, each request that some user may send, with each reply subject on which this user may not publish, and reports
// the effects. The consumer is one of CHANGES that the user may create. An empty filter means that it has none.
func (m *Misdirection) Try(t *testing.T, user string, nc *nats.Conn, consumer, filter string) {
	t.Helper()
	targets := []string{
		m.subject("v1", "secret.shop.db"), m.subject("v1", "rollout.shop.deployment-web"), m.subject("history.v1", "rollout.shop.deployment-web"),
		m.subject("deadletter.v1", "x"), m.ack, "$JS.API.STREAM.PURGE.CHANGES", "$JS.API.CONSUMER.DELETE.CHANGES.webhook-" + m.Cluster,
		"$JS.API.CONSUMER.CREATE.CHANGES.webhook-" + m.Cluster, "$JS.API.CONSUMER.MSG.NEXT.CHANGES.webhook-" + m.Cluster,
	}
	switch user {
	case "watcher":
		targets = targets[1:]
	case "projector": // It may ack for a consumer whose name it knows, and knows that of this one only here.
		targets = slices.DeleteFunc(targets, func(target string) bool { return target == m.ack })
	}
	before := m.state(t)
	m.create(t, nc, consumer, filter)
	own := ".CHANGES." + consumer
	for _, target := range targets {
		for subject, body := range map[string]string{
			"$JS.API.INFO": "", "$JS.API.STREAM.NAMES": "", "$JS.API.STREAM.LIST": "", "$JS.API.CONSUMER.LIST.CHANGES": "",
			"$JS.API.STREAM.INFO.CHANGES": "", "$JS.API.STREAM.INFO.HISTORY": "", "$JS.API.STREAM.INFO.NONE": "",
			"$JS.API.STREAM.MSG.GET.CHANGES":                                    `{"seq":1}`,
			"$JS.API.DIRECT.GET.CHANGES":                                        `{"seq":1}`,
			"$JS.API.DIRECT.GET.CHANGES." + m.subject("v1", "secret.shop.db"):   "",
			"$JS.API.DIRECT.GET.CHANGES." + m.subject("v1", "openbao._.none"):   "",
			"$JS.API.DIRECT.GET.HISTORY." + m.subject("history.v1", "secret.x"): "",
			"$JS.API.CONSUMER.CREATE" + own:                                     "{}",
			"$JS.API.CONSUMER.CREATE.HISTORY.mine":                              "{}",
			"$JS.API.CONSUMER.CREATE.DEADLETTERS.mine":                          "{}",
			"$JS.API.CONSUMER.CREATE" + own + "." + filter:                      "{}",
			"$JS.API.CONSUMER.INFO" + own:                                       "",
			"$JS.API.CONSUMER.MSG.NEXT" + own:                                   `{"batch":2,"no_wait":true}`,
			"$JS.ACK" + own + ".1.1.1.1.0":                                      "+WPI",
			m.subject("v1", "secret.shop.other"):                                "a change",
			m.subject("v1", "openbao._.db"):                                     "a change",
			m.subject("history.v1", "openbao._.db"):                             "a change",
			m.subject("history.v1", "projection.shop.x"):                        "a projection",
		} {
			if err := nc.PublishRequest(subject, target, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, m.state(t)); diff != "" {
			t.Errorf("%s: answers on %s (-before +after):\n%s", user, target, diff)
			before = m.state(t)
		}
	}
}

// create creates the consumer of the user, like a program.
func (m *Misdirection) create(t testing.TB, nc *nats.Conn, name, filter string) {
	t.Helper()
	subject := "$JS.API.CONSUMER.CREATE.CHANGES." + name
	if filter != "" {
		subject += "." + filter
	}
	request, err := json.Marshal(map[string]any{"stream_name": "CHANGES", "config": jetstream.ConsumerConfig{
		Durable: name, FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy,
	}})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := nc.Request(subject, request, 10*time.Second)
	if err != nil {
		t.Fatalf("creating the consumer %s: %v", name, err)
	}
	var created struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(answer.Data, &created); err != nil || created.Name != name {
		t.Fatalf("creating the consumer %s: %s, %v", name, answer.Data, err)
	}
}

// state returns what no response may change: the last messages that are not the user's own, and what the webhook holds.
func (m *Misdirection) state(t testing.TB) map[string]string {
	t.Helper()
	state := make(map[string]string)
	for stream, filters := range map[string][]string{
		"CHANGES":     {m.subject("v1", "secret.shop.db"), m.subject("v1", "rollout.>")},
		"HISTORY":     {m.subject("history.v1", "rollout.>")},
		"DEADLETTERS": {m.subject("deadletter.v1", ">")},
	} {
		s, err := m.Owner.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		for _, filter := range filters {
			info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(filter))
			if err != nil {
				t.Fatal(err)
			}
			for subject, count := range info.State.Subjects {
				state[subject] = strconv.FormatUint(count, 10)
			}
		}
		if stream == "CHANGES" {
			change, err := s.GetLastMsgForSubject(t.Context(), m.subject("v1", "secret.shop.db"))
			if err != nil {
				state["change"] = err.Error()
			} else {
				state["change"] = string(change.Data)
			}
		}
	}
	consumer, err := m.Owner.Consumer(t.Context(), "CHANGES", "webhook-"+m.Cluster)
	if err != nil {
		state["consumer"] = err.Error()
		return state
	}
	info := consumer.CachedInfo()
	state["consumer"] = fmt.Sprintf("%d unacked, %d delivered, %+v", info.NumAckPending, info.Delivered.Consumer, info.Config)
	return state
}
