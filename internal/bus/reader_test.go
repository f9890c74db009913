package bus

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// A server adds these headers to its answer after those of the message.
func TestHeadersOfAPublisherDoNotSayWhereAMessageIs(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	const subject = "keyturn.v1.other.openbao._.db"
	msg := &nats.Msg{Subject: subject, Data: []byte("not an event"), Header: nats.Header{
		jetstream.SubjectHeader: {"keyturn.v1.prod-eu.secret.shop.db"}, jetstream.SequenceHeader: {"999"},
		jetstream.TimeStampHeaer: {"2001-02-03T04:05:06Z"},
	}}
	ack, err := s.jetstream().PublishMsg(t.Context(), msg)
	testkit.Must(t, err)
	stored, err := lastOn(t, b, subject)
	if err != nil || stored.Subject != subject || stored.Seq != ack.Sequence || stored.Time.Year() == 2001 {
		t.Errorf("got %s, sequence %d, of %s (%v), want %s, %d, of now", stored.Subject, stored.Seq, stored.Time, err, subject, ack.Sequence)
	}
}

func TestLast(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	if _, err := lastOn(t, b, "keyturn.v1.prod-eu.secret.shop.none"); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	ack, err := s.jetstream().Publish(t.Context(), "keyturn.v1.prod-eu.secret.shop.db", []byte("not an event"))
	testkit.Must(t, err)
	stored, err := lastOn(t, b, "keyturn.v1.prod-eu.secret.shop.db")
	if err != nil || stored.Seq != ack.Sequence {
		t.Fatalf("got %+v, %v", stored, err)
	}
	wantReason(t, stored.Err, events.ReasonMalformed)
	if _, err := stored.Change(); err == nil {
		t.Error("what is not an event is read as a change")
	}
	if _, err := stored.Outcome(); err == nil {
		t.Error("what is not an event is read as an outcome")
	}
	// It can be superseded nevertheless.
	mustPublish(t, b, version("db", "1"), stored.Seq)
}

// Names are what people write in annotations, and references in pod specs. NATS refuses some subjects, and ends the connection for others.
func TestNobodyIsAskedAboutANameThatNoObjectCanHave(t *testing.T) {
	b := sharedServer(t).bus()
	var lost atomic.Bool
	b.js.Conn().SetDisconnectErrHandler(func(*nats.Conn, error) { lost.Store(true) })
	origins := events.Origins{Cluster: testCluster, StoresFrom: []string{"hub"}}
	for _, source := range []events.Source{
		{Kind: events.KindSecret, Namespace: "shop", Name: "db\ncache"},
		{Kind: events.KindConfigMap, Namespace: "shop", Name: strings.Repeat("a", 5000)},
		{Kind: events.KindSecret, Name: "db"},
		{Kind: events.KindOpenBao, Name: "bao/root/secret/" + strings.Repeat("a", 5000)},
	} {
		stored, err := answer(t, func() (events.Stored, error) { return origins.Last(t.Context(), &b.Reader, source) })
		if !errors.Is(err, events.ErrNotFound) || len(err.Error()) > 300 {
			t.Errorf("%.50q: got %d, %v, want ErrNotFound", source, stored.Seq, err)
		}
	}
	want := mustPublish(t, b, version("db", "1"), 0)
	last := func() (events.Stored, error) { return origins.Last(t.Context(), &b.Reader, version("db", "1").Source) }
	if stored, err := answer(t, last); err != nil || stored.Seq != want {
		t.Errorf("after that: got %d, %v, want %d", stored.Seq, err, want)
	}
	if lost.Load() {
		t.Error("the connection was lost")
	}
}
