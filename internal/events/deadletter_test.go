package events

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestADeadLetterObeysNoServerHeader(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	c := consume(t, b, ConsumeOptions{})
	msg := &nats.Msg{Subject: "keyturn.v1.prod-eu.secret.shop.db", Header: nats.Header{"Nats-TTL": {"1h"}}, Data: []byte("x")}
	if _, err := s.jetstream().PublishMsg(t.Context(), msg, jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithMsgID("1")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it is a dead letter", func() bool {
		letters, err := b.DeadLetters(t.Context(), 10)
		return err == nil && len(letters) == 1
	})
	c.stop()
}
