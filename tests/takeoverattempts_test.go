package tests

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// sends is an attempt to have a message stored, or a request answered.
func (u natsUser) sends(subject, body string) func(t *testing.T) error {
	return func(t *testing.T) error { return errorOf(u.ask(t, text(subject, body))) }
}

// errorOf returns the error of a request.
func errorOf(_ []byte, err error) error { return err }

// unless returns the error of an attempt that succeeds if another's request is refused, of which it has the error. Otherwise, what is so fails it.
func unless(err error, so string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s", errRefused, so)
	case errors.Is(err, errRefused):
		return nil
	}
	return err
}

// requestFor returns the request for a consumer. With the action "update" there must be one of its name.
func requestFor(t testing.TB, stream, action string, config jetstream.ConsumerConfig) *nats.Msg {
	t.Helper()
	body, err := json.Marshal(map[string]any{"stream_name": stream, "action": action, "config": config})
	testkit.Must(t, err)
	subject := "$JS.API.CONSUMER.CREATE." + stream + "." + config.Durable
	if config.FilterSubject != "" {
		subject += "." + config.FilterSubject
	}
	return text(subject, string(body))
}

// takes is an attempt to get what is delivered to a durable consumer of CHANGES. A user that may ask for its messages gets them if it is there.
func (u natsUser) takes(durable string) func(t *testing.T) error {
	return func(t *testing.T) error {
		connection := u.connect(t)
		defer connection.Close()
		next := text("$JS.API.CONSUMER.MSG.NEXT.CHANGES."+durable, `{"batch":1,"no_wait":true}`)
		next.Reply = connection.NewInbox()
		if err := send(t, connection, next); err != nil {
			return err
		}
		return errorOf(u.ask(t, text("$JS.API.CONSUMER.INFO.CHANGES."+durable, "")))
	}
}

// changes is an attempt to change a durable consumer of CHANGES, which then delivers only headers, of what the filter matches.
func (u natsUser) changes(durable, filter string, deliver jetstream.DeliverPolicy) func(t *testing.T) error {
	return func(t *testing.T) error {
		return errorOf(u.ask(t, requestFor(t, "CHANGES", "update", jetstream.ConsumerConfig{
			Durable: durable, FilterSubject: filter, DeliverPolicy: deliver, AckPolicy: jetstream.AckExplicitPolicy, HeadersOnly: true,
		})))
	}
}

// pushes is an attempt to have events delivered to a subject. The server delivers them only if something listens to exactly that.
func (u natsUser) pushes(filter, to string) func(t *testing.T) error {
	return u.pushesAs(rand.Text(), filter, to)
}

// pushesAs is pushes by a consumer of a name.
func (u natsUser) pushesAs(durable, filter, to string) func(t *testing.T) error {
	return func(t *testing.T) error {
		answer, err := u.ask(t, requestFor(t, "CHANGES", "", jetstream.ConsumerConfig{
			Durable: durable, FilterSubject: filter, DeliverSubject: to, AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: time.Minute,
		}))
		if err != nil {
			return err
		}
		var made jetstream.ConsumerInfo
		testkit.Must(t, json.Unmarshal(answer, &made))
		if !made.PushBound {
			return fmt.Errorf("%w: nothing listens to %s", errRefused, to)
		}
		return nil
	}
}

// onDurables are attempts to disturb the durable consumers of others, by the names that anybody could guess. The filter is one that the user may use.
func (u natsUser) onDurables(filter string, durables map[string]jetstream.DeliverPolicy) []attempt {
	attempts := []attempt{
		{"names the consumers", "", u.sends("$JS.API.CONSUMER.NAMES.CHANGES", "")},
		{"lists the consumers", "", u.sends("$JS.API.CONSUMER.LIST.CHANGES", "")},
	}
	for durable, deliver := range durables {
		of := ".CHANGES." + durable
		attempts = append(attempts,
			attempt{"takes what is delivered to " + durable, "", u.takes(durable)},
			attempt{"changes " + durable, "", u.changes(durable, filter, deliver)},
			attempt{"has events use up what " + durable + " asks for", "", u.pushes(filter, "$JS.API.CONSUMER.MSG.NEXT"+of)},
			attempt{"has an event reset " + durable, "", u.pushes(filter, "$JS.API.CONSUMER.RESET"+of)},
			attempt{"resets " + durable, "", u.sends("$JS.API.CONSUMER.RESET"+of, `{"seq":1}`)},
			attempt{"deletes " + durable, "", u.sends("$JS.API.CONSUMER.DELETE"+of, "")},
			attempt{"pauses " + durable, "", u.sends("$JS.API.CONSUMER.PAUSE"+of, `{"pause_until":"2100-01-01T00:00:00Z"}`)},
		)
	}
	return attempts
}

// onStreams are attempts to change the streams, or to publish what only the actuator publishes.
func (u natsUser) onStreams() []attempt {
	return []attempt{
		{"removes all events", "", u.sends("$JS.API.STREAM.PURGE.CHANGES", "")},
		{"removes one event", "", u.sends("$JS.API.STREAM.MSG.DELETE.HISTORY", `{"seq":1}`)},
		{"deletes a stream", "", u.sends("$JS.API.STREAM.DELETE.HISTORY", "")},
		{"changes a stream", "", u.sends("$JS.API.STREAM.UPDATE.HISTORY", `{"name":"HISTORY","subjects":["keyturn.history.v1.>"],"max_msgs":1}`)},
		{"makes a stream of its own", "", u.sends("$JS.API.STREAM.CREATE.MINE", `{"name":"MINE","subjects":["mine"]}`)},
		{"publishes an outcome", "", u.sends("keyturn.v1.demo.rollout.shop.deployment-web", "an outcome")},
		{"writes an outcome into the history", "", u.sends("keyturn.history.v1.demo.rollout.shop.deployment-web", "an outcome")},
		{"publishes a dead letter", "", u.sends("keyturn.deadletter.v1.demo.secret.shop.db", "a letter")},
		{"acks for the webhook", "", u.sends("$JS.ACK.CHANGES.webhook-demo.1.1.1.1.0", "+ACK")},
	}
}

// overflows is an attempt to fill a stream by one subject. The server then discards what is oldest of that alone, if it bounds it.
func (u natsUser) overflows(stream string) func(t *testing.T) error {
	return func(t *testing.T) error {
		if most := u.stream(t, stream).Config.MaxMsgsPerSubject; most > 0 {
			return fmt.Errorf("%w: %s keeps %d events of a subject", errRefused, stream, most)
		}
		return nil
	}
}

// crowds is an attempt to make so many consumers of a stream that another user can make none any more.
func (u natsUser) crowds(stream, filter string, other natsUser) func(t *testing.T) error {
	return func(t *testing.T) error {
		connection := u.connect(t)
		defer connection.Close()
		ctx, stop := running.WithTimeout(t.Context(), patience)
		defer stop()
		for i := range 1100 {
			answer, err := connection.RequestMsgWithContext(ctx, requestFor(t, stream, "", jetstream.ConsumerConfig{
				Durable: fmt.Sprintf("crowd-%d", i), FilterSubject: filter, AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
			}))
			if err != nil {
				return fmt.Errorf("making consumer %d: %w", i, err)
			}
			if strings.Contains(string(answer.Data), `"error"`) {
				break
			}
		}
		needed := jetstream.ConsumerConfig{Durable: "needed", AckPolicy: jetstream.AckNonePolicy}
		return unless(errorOf(other.ask(t, requestFor(t, stream, "", needed))), "the "+other.name+" makes its consumer")
	}
}
