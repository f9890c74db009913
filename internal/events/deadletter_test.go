package events

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// deadLetters returns the last dead letters of the cluster.
func deadLetters(t *testing.T, b *Bus, limit int) ([]DeadLetter, error) {
	t.Helper()
	return answer(t, func() ([]DeadLetter, error) { return b.DeadLetters(t.Context(), limit) })
}

func TestADeadLetterObeysNoServerHeader(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	c := consume(t, b, ConsumeOptions{})
	msg := &nats.Msg{Subject: "keyturn.v1.prod-eu.secret.shop.db", Header: nats.Header{"Nats-TTL": {"1h"}}, Data: []byte("x")}
	if _, err := s.jetstream().PublishMsg(t.Context(), msg, jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithMsgID("1")); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "it is a dead letter", func(ctx context.Context) bool {
		letters, err := b.DeadLetters(ctx, 10)
		return err == nil && len(letters) == 1
	})
	c.stop()
}
