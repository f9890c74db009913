package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// natsUser is whoever has the seed of a NATS user.
type natsUser struct {
	k    *takeover
	name string
}

func (k *takeover) user(name string) natsUser { return natsUser{k, name} }

func (u natsUser) connect(t testing.TB) *nats.Conn {
	t.Helper()
	role := map[string]string{"reader": "actuator", "audit": "watcher"}[u.name]
	if role == "" {
		role = u.name
	}
	ctx, stop := running.WithTimeout(t.Context(), patience)
	defer stop()
	// It is patient with a server that answers no ping, as on a busy machine.
	connection, err := bus.Connect(ctx, bus.ConnectOptions{
		URL: u.k.programs.NATSURL(), Cluster: u.k.programs.Cluster(), Role: role, Name: "test",
		CredsFile: u.k.file(u.name + ".nk"), CAFile: u.k.file("ca.crt"),
	}, nats.PingInterval(patience))
	testkit.Must(t, err)
	return connection
}

// send sends a message. The error wraps errRefused if the user may not.
func send(t testing.TB, connection *nats.Conn, msg *nats.Msg) error {
	t.Helper()
	testkit.Must(t, errors.Join(connection.PublishMsg(msg), connection.FlushTimeout(patience)))
	// The server refuses a message before it answers what a flush asks.
	err := connection.LastError()
	if errors.Is(err, nats.ErrPermissionViolation) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// ask sends a request, on a connection of its own, and returns the answer. The error wraps errRefused if that is one, or the user may not ask.
func (u natsUser) ask(t testing.TB, msg *nats.Msg) ([]byte, error) {
	t.Helper()
	connection := u.connect(t)
	defer connection.Close()
	msg.Reply = connection.NewInbox()
	answers, err := connection.SubscribeSync(msg.Reply)
	testkit.Must(t, err)
	if err := send(t, connection, msg); err != nil {
		return nil, err
	}
	ctx, stop := running.WithTimeout(t.Context(), patience)
	defer stop()
	answer, err := answers.NextMsgWithContext(ctx)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for an answer on %s: %w", msg.Subject, err)
	}
	if status := answer.Header.Get("Status"); status != "" {
		return nil, fmt.Errorf("%w: status %s", errRefused, status)
	}
	var refusal struct{ Error *jetstream.APIError }
	if json.Unmarshal(answer.Data, &refusal) == nil && refusal.Error != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, refusal.Error)
	}
	return answer.Data, nil
}

// text returns a message.
func text(subject, body string) *nats.Msg {
	msg := nats.NewMsg(subject)
	msg.Data = []byte(body)
	return msg
}

// stream returns what a stream says of itself.
func (u natsUser) stream(t testing.TB, name string) (info jetstream.StreamInfo) {
	t.Helper()
	answer, err := u.ask(t, text("$JS.API.STREAM.INFO."+name, ""))
	if err == nil {
		err = json.Unmarshal(answer, &info)
	}
	testkit.Must(t, err)
	return info
}
