package bus

import (
	"errors"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// deadLetters returns the last dead letters of the cluster.
func deadLetters(t *testing.T, b *Bus, limit int) ([]events.DeadLetter, error) {
	t.Helper()
	return answer(t, func() ([]events.DeadLetter, error) { return b.DeadLetters(t.Context(), limit) })
}

func TestAnEventThatCannotBeReadIsDeadLetteredOnce(t *testing.T) {
	s := sharedServer(t)
	b, another := s.bus(), s.bus()
	db := version("db", "1")
	at := events.Address{Cluster: testCluster, Kind: events.KindSecret, Namespace: db.Source.Namespace, Name: db.Source.Name}
	reject := func(by *Bus, want string) {
		t.Helper()
		if reason, err := answer(t, func() (string, error) { return by.RejectLast(t.Context(), at) }); err != nil || reason != want {
			t.Errorf("it is rejected as %q (%v), want %q", reason, err, want)
		}
	}
	garble := func() {
		t.Helper()
		testkit.Must(t, errIn(s.jetstream().Publish(t.Context(), at.Subject(), []byte("no event"))))
	}
	reject(b, "") // There is none.
	mustPublish(t, b, db, 0)
	reject(b, "")
	garble()
	reject(b, events.ReasonMalformed)
	reject(b, "")
	reject(another, "")
	garble()
	reject(another, events.ReasonMalformed)
	letters, err := answer(t, func() ([]events.DeadLetter, error) { return b.DeadLetters(t.Context(), 10) })
	if err != nil || len(letters) != 2 || letters[0].Subject != at.Subject() || letters[0].Seq >= letters[1].Seq {
		t.Errorf("the dead letters are %+v (%v), want one of each event", letters, err)
	}
}

// The events that can be read wait for each attempt.
func TestAfterADeadLetterThatFailedNoneIsPublishedForAWhile(t *testing.T) {
	s := sharedServer(t)
	b, now := s.bus(), testTime
	b.now = func() time.Time { return now }
	c, err := b.newConsumption(b.changes, ConsumeOptions{Durable: "actuator"})
	testkit.Must(t, err)
	d := &Delivery{consumption: c, subject: "keyturn.v1.prod-eu.secret.shop.db", Seq: 1, StoredAt: testTime}
	bury := func() bool {
		return d.isBuried(t.Context(), &events.RejectError{Reason: events.ReasonMalformed, Err: errors.New("no event")})
	}
	testkit.Must(t, s.jetstream().DeleteStream(t.Context(), events.StreamDeadLetters))
	if bury() {
		t.Error("it is published without a stream")
	}
	s.declare()
	if bury() {
		t.Error("it is published at once")
	}
	testkit.Eventually(t, "it is published", func() bool { now = now.Add(deadLetterPause); return bury() })
}

// Who may publish on one subject can make as many dead letters of it as they like.
func TestTheDeadLettersOfOneObjectDoNotPushOutThoseOfOthers(t *testing.T) {
	s := sharedServer(t)
	js := s.jetstream()
	publish := func(object string) {
		t.Helper()
		published(t, func() error {
			_, err := js.Publish(t.Context(), events.DeadLetterRoot+testCluster+".secret.shop."+object, []byte("refused"))
			return err
		})
	}
	publish("quiet")
	for range deadLettersPerSubject + 50 {
		publish("noisy")
	}
	stream, err := js.Stream(t.Context(), events.StreamDeadLetters)
	testkit.Must(t, err)
	if got := stream.CachedInfo().State; got.FirstSeq != 1 || got.Msgs != deadLettersPerSubject+1 {
		t.Errorf("it has %d letters from %d on, want the first one and %d others", got.Msgs, got.FirstSeq, deadLettersPerSubject)
	}
}
