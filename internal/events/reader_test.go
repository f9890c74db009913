package events

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	must(t, err)
	stored, err := lastOn(t, b, subject)
	if err != nil || stored.Subject != subject || stored.Seq != ack.Sequence || stored.Time.Year() == 2001 {
		t.Errorf("got %s, sequence %d, of %s (%v), want %s, %d, of now", stored.Subject, stored.Seq, stored.Time, err, subject, ack.Sequence)
	}
}

func TestLast(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	if _, err := lastOn(t, b, "keyturn.v1.prod-eu.secret.shop.none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	ack, err := s.jetstream().Publish(t.Context(), "keyturn.v1.prod-eu.secret.shop.db", []byte("not an event"))
	must(t, err)
	stored, err := lastOn(t, b, "keyturn.v1.prod-eu.secret.shop.db")
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

// silent is a stream whose server answers nothing, or no more than what its subjects are.
type silent struct {
	jetstream.Stream
	subjects map[string]uint64
}

func (silent) CachedInfo() *jetstream.StreamInfo { return &jetstream.StreamInfo{} }

func (s silent) Info(ctx context.Context, _ ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	if s.subjects == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &jetstream.StreamInfo{State: jetstream.StreamState{Subjects: s.subjects}}, nil
}

func (silent) OrderedConsumer(ctx context.Context, _ jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) GetLastMsgForSubject(ctx context.Context, _ string) (*jetstream.RawStreamMsg, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A new leader has a minute for what it reads, and servers that elect a leader lose requests.
func TestARequestWithoutAnAnswerLeavesTimeToRepeatIt(t *testing.T) {
	subject := Subject(testCluster, change().Source)
	state := func(ctx context.Context, r *Reader) error {
		return r.State(ctx, []string{subject}, func(Stored) error { return nil })
	}
	for _, tt := range []struct {
		name   string
		stream silent
		read   func(context.Context, *Reader) error
	}{
		{"what the subjects are", silent{}, state},
		{"a consumer of them", silent{subjects: map[string]uint64{subject: 1}}, state},
		{"the last event on one", silent{}, func(ctx context.Context, r *Reader) error {
			_, err := r.Last(ctx, subject)
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				err := tt.read(ctx, &Reader{changes: tt.stream, stall: stall, lostAfter: lostAfter})
				if took := time.Since(began); !IsSilence(err) || took != requestTimeout {
					t.Errorf("got %v after %s, want to be told that nobody answers after %s", err, took, requestTimeout)
				}
			})
		})
	}
}

// Names are what people write in annotations, and references in pod specs. NATS refuses some subjects, and ends the connection for others.
func TestNobodyIsAskedAboutANameThatNoObjectCanHave(t *testing.T) {
	b := sharedServer(t).bus()
	var lost atomic.Bool
	b.js.Conn().SetDisconnectErrHandler(func(*nats.Conn, error) { lost.Store(true) })
	origins := Origins{Cluster: testCluster, StoresFrom: []string{"hub"}}
	for _, source := range []Source{
		{Kind: KindSecret, Namespace: "shop", Name: "db cache"},
		{Kind: KindSecret, Namespace: "shop", Name: "db\ncache"},
		{Kind: KindConfigMap, Namespace: "shop", Name: "*"},
		{Kind: KindConfigMap, Namespace: "shop", Name: strings.Repeat("a", 5000)},
		{Kind: KindSecret, Namespace: "shop", Name: "Caché"},
		{Kind: KindSecret, Name: "db"},
		{Kind: KindOpenBao, Name: "bao/root/secret/" + strings.Repeat("a", 5000)},
	} {
		stored, err := answer(t, func() (Stored, error) { return origins.Last(t.Context(), &b.Reader, source) })
		if !errors.Is(err, ErrNotFound) || len(err.Error()) > 300 {
			t.Errorf("%.50q: got %d, %v, want ErrNotFound", source, stored.Seq, err)
		}
	}
	want := mustPublish(t, b, version("db", "1"), 0)
	last := func() (Stored, error) { return origins.Last(t.Context(), &b.Reader, version("db", "1").Source) }
	if stored, err := answer(t, last); err != nil || stored.Seq != want {
		t.Errorf("after that: got %d, %v, want %d", stored.Seq, err, want)
	}
	if lost.Load() {
		t.Error("the connection was lost")
	}
}
