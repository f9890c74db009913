package events

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"
)

// replica is a stream whose readings a replica answers first, and then the leader.
type replica struct {
	jetstream.Stream

	answers []func(*jetstream.RawStreamMsg) (*jetstream.RawStreamMsg, error)
}

func (r *replica) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	msg, err := r.Stream.GetLastMsgForSubject(ctx, subject)
	if err != nil || len(r.answers) == 0 {
		return msg, err
	}
	answer := r.answers[0]
	r.answers = r.answers[1:]
	return answer(msg)
}

func noEvent(*jetstream.RawStreamMsg) (*jetstream.RawStreamMsg, error) {
	return nil, jetstream.ErrMsgNotFound
}

func anEarlierEvent(msg *jetstream.RawStreamMsg) (*jetstream.RawStreamMsg, error) {
	msg.Sequence--
	return msg, nil
}

func quickly() wait.Backoff { return wait.Backoff{Duration: time.Millisecond, Steps: behindRetries} }

func TestAReplicaThatIsBehindDropsNoReplay(t *testing.T) {
	b := sharedServer(t).bus()
	seq := mustPublish(t, b, version("db", "1"), 0)
	later := version("db", "2")
	seq = mustPublish(t, b, later, seq)
	c := consume(t, b, ConsumeOptions{})
	c.reject(c.next(), rejectf("not-wanted", "no"))
	letter := letters(t, b, 1)[0]
	drained(t, b)
	c.stop()
	behind := &replica{Stream: b.changes}
	b.changes, b.retry = behind, quickly
	for range behindRetries + 1 {
		behind.answers = append(behind.answers, noEvent)
	}
	if err := b.CanReplay(t.Context(), letter, nil); !errors.Is(err, ErrBehind) || len(behind.answers) > 0 {
		t.Errorf("got %v, and %d answers of the replica are left; want all, and that it is behind", err, len(behind.answers))
	}
	behind.answers = append(behind.answers, noEvent, anEarlierEvent)
	replay(t, b, letter)
	behind.answers = append(behind.answers, noEvent, anEarlierEvent)
	next := consume(t, b, ConsumeOptions{Backoff: func(int) time.Duration { return time.Millisecond }})
	d := next.next()
	if d.Change.ID() != later.ID() || d.Seq != seq || d.Deliveries != 3 {
		t.Errorf("delivered is %s of sequence %d for the time %d, want %s of %d for the third", d.Change.ID(), d.Seq, d.Deliveries, later.ID(), seq)
	}
	d.Done(t.Context(), nil)
	isIdle(t, b)
	next.stop()
}

func TestARequestForAReplayBelievesAReplicaInTheEnd(t *testing.T) {
	b := sharedServer(t).bus()
	seq := mustPublish(t, b, version("db", "1"), 0)
	mustPublish(t, b, version("db", "2"), seq)
	c := consume(t, b, ConsumeOptions{})
	c.reject(c.next(), rejectf("not-wanted", "no"))
	letter := letters(t, b, 1)[0]
	drained(t, b)
	c.stop()
	request(t, b, letter)
	// The leader lost the event: each answer is an earlier one.
	lost := &replica{Stream: b.changes}
	for range behindDeliveries {
		lost.answers = append(lost.answers, anEarlierEvent)
	}
	b.changes, b.now = lost, func() time.Time { return time.Now().Add(behindFor) }
	next := consume(t, b, ConsumeOptions{Backoff: func(int) time.Duration { return time.Millisecond }})
	isIdle(t, b)
	next.stop()
	if len(lost.answers) > 0 {
		t.Errorf("it believed the answer with %d more to come", len(lost.answers))
	}
}

func TestARequestForAReplayDoubtsAReplicaForAnHour(t *testing.T) {
	now := time.Now()
	b := &Bus{now: func() time.Time { return now }}
	for _, tt := range []struct {
		name string
		d    *Delivery
		want bool
	}{
		{"long ago and often", &Delivery{Replay: 1, Asked: now.Add(-behindFor), Deliveries: behindDeliveries}, true},
		{"often in a short time", &Delivery{Replay: 1, Asked: now.Add(-behindFor + 1), Deliveries: 1000}, false},
		{"long ago, as the servers were down", &Delivery{Replay: 1, Asked: now.Add(-24 * time.Hour), Deliveries: behindDeliveries - 1}, false},
		{"not asked for yet", &Delivery{Asked: now.Add(-24 * time.Hour)}, false},
	} {
		if got := b.believes(tt.d); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestAnEventOfAStreamThatWasMadeAnewIsGone(t *testing.T) {
	b := sharedServer(t).bus()
	first := version("db", "1")
	mustPublish(t, b, first, 0)
	last := mustPublish(t, b, version("other", "2"), 0)
	for name, letter := range map[string]DeadLetter{
		"later than all of the stream": {Seq: last + 1, Time: time.Now()},
		"from before the stream":       {Seq: last},
	} {
		letter.Subject = Subject(testCluster, first.Source)
		if err := canReplay(t, b, letter, nil); !errors.Is(err, ErrSuperseded) {
			t.Errorf("%s: got %v, want ErrSuperseded", name, err)
		}
	}
}
