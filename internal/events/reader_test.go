package events

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A server adds these headers to its answer after those of the message.
func TestHeadersOfAPublisherDoNotSayWhereAMessageIs(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	const subject = "keyturn.v1.other.openbao._.db"
	msg := &nats.Msg{Subject: subject, Data: []byte("not an event"), Header: nats.Header{
		jetstream.SubjectHeader: {"keyturn.v1.prod-eu.secret.shop.db"}, jetstream.SequenceHeader: {"999"},
		jetstream.TimeStampHeaer: {"2001-02-03T04:05:06Z"},
	}}
	ack, err := s.jetstream().PublishMsg(t.Context(), msg)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := b.Last(t.Context(), subject)
	if err != nil || stored.Subject != subject || stored.Seq != ack.Sequence || stored.Time.Year() == 2001 {
		t.Errorf("got %s, sequence %d, of %s (%v), want %s, %d, of now", stored.Subject, stored.Seq, stored.Time, err, subject, ack.Sequence)
	}
	// A replay goes where the message is, too.
	letter := DeadLetter{Subject: subject, Seq: ack.Sequence}
	if err := b.CanReplay(t.Context(), letter, []string{"other"}); err == nil || errors.Is(err, ErrSuperseded) {
		t.Errorf("a replay: got %v, want that it cannot be read", err)
	}
}

func TestLast(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	if _, err := b.Last(t.Context(), "keyturn.v1.prod-eu.secret.shop.none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	ack, err := s.jetstream().Publish(t.Context(), "keyturn.v1.prod-eu.secret.shop.db", []byte("not an event"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := b.Last(t.Context(), "keyturn.v1.prod-eu.secret.shop.db")
	if err != nil || stored.Seq != ack.Sequence {
		t.Fatalf("got %+v, %v", stored, err)
	}
	wantReason(t, stored.Err, ReasonMalformed)
	if _, err := stored.Change(); err == nil {
		t.Error("what is not an event is read as a change")
	}
	if _, err := stored.Outcome(); err == nil {
		t.Error("what is not an event is read as an outcome")
	}
	// It can be superseded nevertheless.
	mustPublish(t, b, version("db", "1"), stored.Seq)
}
