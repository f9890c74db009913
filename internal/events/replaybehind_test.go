package events

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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

func TestAReplicaThatIsBehindDropsNoReplay(t *testing.T) {
	b := startServer(t).bus()
	seq := mustPublish(t, b, version("db", "1"), 0)
	later := version("db", "2")
	seq = mustPublish(t, b, later, seq)
	c := consume(t, b, ConsumeOptions{})
	c.next().Done(t.Context(), rejectf("not-wanted", "no"))
	letter := letters(t, b, 1)[0]
	c.stop()
	nothing := func(*jetstream.RawStreamMsg) (*jetstream.RawStreamMsg, error) { return nil, jetstream.ErrMsgNotFound }
	earlier := func(msg *jetstream.RawStreamMsg) (*jetstream.RawStreamMsg, error) {
		msg.Sequence--
		return msg, nil
	}
	behind := &replica{Stream: b.changes}
	b.changes = behind
	for _, answer := range []func(*jetstream.RawStreamMsg) (*jetstream.RawStreamMsg, error){nothing, earlier} {
		behind.answers = append(behind.answers, answer)
		if err := b.CanReplay(t.Context(), letter, nil); !errors.Is(err, errBehind) {
			t.Errorf("got %v, want that the replica is behind", err)
		}
	}
	replay(t, b, letter)
	behind.answers = append(behind.answers, nothing, earlier)
	next := consume(t, b, ConsumeOptions{Backoff: func(int) time.Duration { return time.Millisecond }})
	d := next.next()
	if d.Change.ID() != later.ID() || d.Seq != seq || d.Deliveries != 3 {
		t.Errorf("delivered is %s of sequence %d for the time %d, want %s of %d for the third", d.Change.ID(), d.Seq, d.Deliveries, later.ID(), seq)
	}
	d.Done(t.Context(), nil)
	isIdle(t, b)
	next.stop()
}

func TestAnEventOfAStreamThatWasMadeAnewIsGone(t *testing.T) {
	b := startServer(t).bus()
	first := version("db", "1")
	mustPublish(t, b, first, 0)
	last := mustPublish(t, b, version("other", "2"), 0)
	for name, letter := range map[string]DeadLetter{
		"later than all of the stream": {Seq: last + 1, Time: time.Now()},
		"from before the stream":       {Seq: last},
	} {
		letter.Subject = Subject(testCluster, first.Source)
		if err := b.CanReplay(t.Context(), letter, nil); !errors.Is(err, ErrSuperseded) {
			t.Errorf("%s: got %v, want ErrSuperseded", name, err)
		}
	}
}
