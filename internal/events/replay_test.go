package events

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
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

// canReplay returns whether a dead letter can be replayed.
func canReplay(t *testing.T, b *Bus, letter DeadLetter, storesFrom []string) error {
	t.Helper()
	return errorOf(t, func() error { return b.CanReplay(t.Context(), letter, storesFrom) })
}

// letters waits until the cluster has so many dead letters, and returns them.
func letters(t *testing.T, b *Bus, want int) []DeadLetter {
	t.Helper()
	var list []DeadLetter
	testkit.Await(t, "the event is a dead letter", func(ctx context.Context) bool {
		var err error
		list, err = b.DeadLetters(ctx, 100)
		return err == nil && len(list) == want
	})
	return list
}

func replay(t *testing.T, b *Bus, letter DeadLetter) {
	t.Helper()
	if err := canReplay(t, b, letter, nil); err != nil {
		t.Fatal(err)
	}
	request(t, b, letter)
}

// request requests a replay. While the disk is busy, the server stores it later than it is waited for; a second request would have the event
// delivered twice.
func request(t *testing.T, b *Bus, letter DeadLetter) {
	t.Helper()
	before := lastRequest(t, b)
	if err := b.Replay(t.Context(), letter); err != nil && !IsSilence(err) {
		t.Fatal(err)
	}
	testkit.Await(t, "the request is stored", func(context.Context) bool { return lastRequest(t, b) > before })
}

// lastRequest returns the sequence of the last request for a replay, zero if there is none.
func lastRequest(t *testing.T, b *Bus) (seq uint64) {
	t.Helper()
	testkit.Await(t, "the last request is read", func(ctx context.Context) bool {
		last, err := b.deadLetters.GetLastMsgForSubject(ctx, replaySubject(b.cluster))
		if err == nil {
			seq = last.Sequence
		}
		return err == nil || errors.Is(err, jetstream.ErrMsgNotFound)
	})
	return seq
}

// isIdle waits until no request for a replay is in flight or waits.
func isIdle(t *testing.T, b *Bus) {
	t.Helper()
	last := lastRequest(t, b)
	// A consumer that is new may not count yet what is stored.
	testkit.Await(t, "all replays are done", func(ctx context.Context) bool {
		consumer, err := b.deadLetters.Consumer(ctx, "actuator")
		return err == nil && consumer.CachedInfo().AckFloor.Stream >= last
	})
}

func TestAReplayDeliversTheEventOfADeadLetterAgainAndPublishesNone(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	change := version("db", "1")
	seq := mustPublish(t, b, change, 0)
	c := consume(t, b, ConsumeOptions{})
	c.reject(c.next(), rejectf("not-wanted", "no"))
	letter := letters(t, b, 1)[0]
	if letter.ID == 0 || !letter.Replayed.IsZero() {
		t.Errorf("it has the id %d and was replayed at %s, want an id and never", letter.ID, letter.Replayed)
	}

	replay(t, b, letter)
	d := c.next()
	if !d.Since().Equal(d.Asked) || !d.Asked.After(d.StoredAt) {
		t.Errorf("it waits since %s, and was asked for at %s; want both after the event was stored at %s", d.Since(), d.Asked, d.StoredAt)
	}
	if d.Change.ID() != change.ID() || d.Seq != seq || d.Replay == 0 || d.StoredAt.IsZero() {
		t.Errorf("delivered is %s of sequence %d, replay %d, stored at %s", d.Change.ID(), d.Seq, d.Replay, d.StoredAt)
	}
	// It waits on the stream for who comes next, as a change does.
	d.Done(t.Context(), context.Canceled)
	again := c.next()
	if again.Replay != d.Replay || again.Deliveries != 2 {
		t.Errorf("delivered is replay %d for the time %d, want %d for the second time", again.Replay, again.Deliveries, d.Replay)
	}
	again.Done(t.Context(), nil)
	isIdle(t, b)
	if list := letters(t, b, 1); list[0].Replayed.IsZero() || list[0].ID != letter.ID {
		t.Errorf("the dead letter is %+v, want the same as before and that it was replayed", list[0])
	}
	js := s.jetstream()
	for _, stream := range []string{StreamChanges, StreamHistory} {
		if stored := messages(t, js, stream); len(stored) != 1 {
			t.Errorf("%s has %d messages, want the change alone", stream, len(stored))
		}
	}

	// It is dead-lettered again at once, within the time in which the server takes the same event for a duplicate.
	replay(t, b, letter)
	c.reject(c.next(), rejectf("not-wanted", "still not"))
	if list := letters(t, b, 2); list[1].Error != "still not" || list[1].Seq != seq || !list[1].Replayed.IsZero() {
		t.Errorf("the second dead letter is %+v, want one of the same event with the new error", list[1])
	}
	c.stop()
}

func TestAReplayWaitsUntilSomebodyConsumes(t *testing.T) {
	b := sharedServer(t).bus()
	mustPublish(t, b, version("db", "1"), 0)
	c := consume(t, b, ConsumeOptions{})
	c.reject(c.next(), rejectf("not-wanted", "no"))
	letter := letters(t, b, 1)[0]
	drained(t, b)
	c.stop()
	replay(t, b, letter)
	next := consume(t, b, ConsumeOptions{})
	next.next().Done(t.Context(), nil)
	isIdle(t, b)
	next.stop()
}

func TestAReplayTakesTheEventOfNoLaterOne(t *testing.T) {
	b := sharedServer(t).bus()
	seq := mustPublish(t, b, version("db", "1"), 0)
	c := consume(t, b, ConsumeOptions{})
	c.reject(c.next(), rejectf("not-wanted", "no"))
	letter := letters(t, b, 1)[0]
	later := version("db", "2")
	mustPublish(t, b, later, seq)
	if d := c.next(); d.Change.ID() != later.ID() {
		t.Fatalf("delivered is %s, want %s", d.Change.ID(), later.ID())
	} else {
		d.Done(t.Context(), nil)
	}
	if err := canReplay(t, b, letter, nil); !errors.Is(err, ErrSuperseded) {
		t.Errorf("got %v, want ErrSuperseded", err)
	}
	// It may have been superseded between the question and the replay.
	request(t, b, letter)
	isIdle(t, b)
	c.stop()
	select {
	case d := <-c.deliveries:
		t.Errorf("%s is delivered again", d.Change.ID())
	default:
	}
	letter.Subject = Subject(testCluster, version("other", "1").Source)
	if err := canReplay(t, b, letter, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("of a source that the stream has forgotten: got %v, want ErrNotFound", err)
	}
}

func TestARequestThatNamesNoEventEndsWithOneLine(t *testing.T) {
	s, log := sharedServer(t), &testkit.Log{}
	b, err := Open(t.Context(), s.connect(), testCluster, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	db := Subject(testCluster, version("db", "1").Source)
	requests := []map[string]string{
		{},
		{headerSubject: "keyturn.v1." + testCluster + "._replay", headerSequence: "1"}, // a letter about it would be a request
		{headerSubject: "%zz", headerSequence: "1"},
		{headerSubject: db, headerSequence: "one"},
		{headerSubject: db, headerSequence: "1", headerEvent: "%"},
	}
	for _, fields := range requests {
		request := &nats.Msg{Subject: replaySubject(testCluster), Header: nats.Header{}}
		for key, value := range fields {
			request.Header.Set(key, value)
		}
		if _, err := s.jetstream().PublishMsg(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	c := consume(t, b, ConsumeOptions{OnReject: func(_ context.Context, reason string) { t.Errorf("an event is rejected as %s", reason) }})
	isIdle(t, b)
	c.stop()
	if stored := messages(t, s.jetstream(), StreamDeadLetters); len(stored) != len(requests) {
		t.Errorf("%s has %d messages, want the %d requests", StreamDeadLetters, len(stored), len(requests))
	}
	if lines := strings.Count(log.String(), `msg="event rejected" subject=`+replaySubject(testCluster)); lines != len(requests) {
		t.Errorf("got %d lines, want one for each of %d requests:\n%s", lines, len(requests), log)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add("keyturn.v1.prod-eu.secret.shop.db", "7", "uid/100")
	f.Add("keyturn.v1.prod-eu._replay", "1", "")
	f.Add("%6beyturn.v1.c.configmap._.a", "-1", "%")
	f.Fuzz(func(t *testing.T, subject, seq, id string) {
		request, err := parseRequest(nats.Header{headerSubject: {subject}, headerSequence: {seq}, headerEvent: {id}})
		if err != nil {
			if _, rejected := errors.AsType[*RejectError](err); !rejected || request != (rejectedEvent{}) {
				t.Errorf("got %+v and %v, want no event and a RejectError", request, err)
			}
			return
		}
		if letter := deadLetterSubject("prod-eu", request.subject); letter == replaySubject("prod-eu") {
			t.Errorf("the dead letter of %q is a request", request.subject)
		}
		again, err := parseRequest(nats.Header{
			headerSubject: {percentEncode(request.subject)}, headerSequence: {strconv.FormatUint(request.seq, 10)},
			headerEvent: {percentEncode(request.id)},
		})
		if err != nil || again != request {
			t.Errorf("%+v is read again as %+v, %v", request, again, err)
		}
	})
}

func TestAnEventThatCannotBeReadIsNotReplayed(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	rejects := make(chan string, 10)
	c := consume(t, b, ConsumeOptions{OnReject: func(_ context.Context, reason string) { rejects <- reason }})
	msg := &nats.Msg{Subject: "keyturn.v1.prod-eu.secret.shop.db", Data: []byte("x")}
	if _, err := s.jetstream().PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	letter := letters(t, b, 1)[0]
	if _, rejected := errors.AsType[*RejectError](canReplay(t, b, letter, nil)); !rejected {
		t.Errorf("it can be replayed")
	}
	if _, rejected := errors.AsType[*RejectError](canReplay(t, b, DeadLetter{}, nil)); !rejected {
		t.Errorf("a dead letter that does not say of which event it is can be replayed")
	}
	request(t, b, letter)
	if list := letters(t, b, 2); list[1].Reason != list[0].Reason || string(list[1].Data) != "x" {
		t.Errorf("got %+v, want a second one like %+v", list[1], list[0])
	}
	for _, which := range []string{"first", "second"} {
		if reason := testkit.Receive(t, "the "+which+" refusal", rejects); reason != ReasonMalformed {
			t.Errorf("the %s is rejected as %s, want it as %s", which, reason, ReasonMalformed)
		}
	}
	c.stop()
}
