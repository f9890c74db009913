package events

import (
	"errors"
	"testing"
)

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
