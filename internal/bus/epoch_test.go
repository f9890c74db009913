package bus

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// answering is a stream that says what it is told to say: what it is, and the last message on a subject. The last answers are repeated.
type answering struct {
	jetstream.Stream
	info *jetstream.StreamInfo
	// last has the answers to the requests for the last message. Nil means that there is none.
	last  []*jetstream.RawStreamMsg
	asked int
}

func (a *answering) CachedInfo() *jetstream.StreamInfo { return &jetstream.StreamInfo{} }

func (a *answering) Info(context.Context, ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	return a.info, nil
}

func (a *answering) GetLastMsgForSubject(context.Context, string) (*jetstream.RawStreamMsg, error) {
	a.asked++
	last := a.last[min(a.asked, len(a.last))-1]
	if last == nil {
		return nil, jetstream.ErrMsgNotFound
	}
	return last, nil
}

func TestTheStreamIsReadAgainIfItIsNotAsItWas(t *testing.T) {
	message := func(seq uint64, at time.Time) *jetstream.RawStreamMsg {
		return &jetstream.RawStreamMsg{Sequence: seq, Time: at}
	}
	stream := func(created time.Time, last uint64) *jetstream.StreamInfo {
		return &jetstream.StreamInfo{Created: created, State: jetstream.StreamState{LastSeq: last}}
	}
	type last = []*jetstream.RawStreamMsg
	same, older := message(9, testTime), message(7, testTime.Add(-time.Minute))
	for _, tt := range []struct {
		name string
		info *jetstream.StreamInfo
		last last
		lost bool
	}{
		{"nothing was lost", stream(testTime, 12), last{same}, false},
		{"a server lags behind", stream(testTime, 12), last{same, older, same}, false},
		{"the message is gone", stream(testTime, 12), last{nil}, true},
		{"another one has its sequence", stream(testTime, 12), last{message(9, testTime.Add(time.Second))}, true},
		{"a later one has not come", stream(testTime, 12), last{message(11, testTime.Add(time.Second))}, true},
		{"it was created again", stream(testTime.Add(time.Hour), 12), last{same}, true},
		{"it ends before the message", stream(testTime, 8), last{same}, true},
	} {
		want, after := error(nil), readInterval
		if tt.lost {
			want, after = errOtherStream, checkInterval+replicaLag
		}
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &testkit.Log{}
				b := &Bus{Reader: Reader{changes: &answering{info: tt.info, last: tt.last}}, logger: log.Logger()}
				e := &epoch{bus: b, created: testTime, first: 11, last: 11}
				e.newest.subject, e.newest.seq, e.newest.at = "keyturn.v1.prod-eu.secret.shop.db", 9, testTime
				f, began := &Follower{bus: b}, time.Now()
				if err := f.watch(t.Context(), e, nil); !errors.Is(err, want) {
					t.Errorf("error %v, want %v", err, want)
				}
				if took := time.Since(began); took != after {
					t.Errorf("it is read again after %s, want %s", took, after)
				}
				if log.String() != "" {
					t.Errorf("the log is\n%s", log)
				}
			})
		})
	}
}

// A stream that had nothing has no message to look for.
func TestAnEmptyStreamIsAsItWas(t *testing.T) {
	b := &Bus{Reader: Reader{changes: &answering{info: &jetstream.StreamInfo{Created: testTime}}}, logger: slog.New(slog.DiscardHandler)}
	if err := (&epoch{bus: b, created: testTime}).check(t.Context()); err != nil {
		t.Error(err)
	}
}

// ignoring is a Taker that takes nothing.
type ignoring struct{}

func (ignoring) Put(events.Address, *events.LastChange) {}
func (ignoring) Complete(uint64)                        {}

// Nothing is lost when the stream drops a deletion.
func TestADeletionIsOnTheStreamForADay(t *testing.T) {
	for age, want := range map[time.Duration]error{time.Hour: errOtherStream, events.TombstoneTTL: nil} {
		t.Run(age.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				info := &jetstream.StreamInfo{State: jetstream.StreamState{LastSeq: 9}}
				b := &Bus{Reader: Reader{changes: &answering{info: info, last: []*jetstream.RawStreamMsg{nil}}}, logger: slog.New(slog.DiscardHandler)}
				e := &epoch{bus: b, taker: ignoring{}}
				gone := change()
				gone.Verb = events.VerbDeleted
				stored, err := gone.Encode()
				testkit.Must(t, err)
				stored.Seq, stored.Time = 9, time.Now().Add(-age)
				e.put(t.Context(), stored)
				if err := e.check(t.Context()); !errors.Is(err, want) {
					t.Errorf("error %v, want %v", err, want)
				}
			})
		})
	}
}

// lagging is a consumer that says how far it is.
type lagging struct {
	jetstream.Consumer
	info *jetstream.ConsumerInfo
}

func (l lagging) Info(context.Context) (*jetstream.ConsumerInfo, error) {
	if l.info == nil {
		return nil, context.DeadlineExceeded
	}
	return l.info, nil
}
