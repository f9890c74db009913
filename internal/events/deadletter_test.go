package events

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestARequestForAReplayIsNotedOnTheLettersBeforeIt(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	list := []DeadLetter{{ID: 1, Subject: "a", Seq: 7}, {ID: 2, Subject: "b", Seq: 8}, {ID: 3, Subject: "a", Seq: 7}, {ID: 5, Subject: "a", Seq: 7}}
	noteReplays(list, map[rejectedEvent]replayRequest{{subject: "a", seq: 7}: {id: 4, at: at}, {subject: "b", seq: 9}: {id: 6, at: at}})
	var got []time.Time
	for _, letter := range list {
		got = append(got, letter.Replayed)
	}
	if diff := cmp.Diff([]time.Time{at, {}, at, {}}, got); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
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
