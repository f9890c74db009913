package bus

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// publishers publish as a watcher does, one after the other each, and count how many are in flight.
type publishers struct {
	limit  *InFlight
	answer func() error // takes as long as the answer of a server

	mu          sync.Mutex
	now, most   int
	publication int
}

// run publishes until ctx is done.
func (p *publishers) run(ctx context.Context) {
	for ctx.Err() == nil {
		p.limit.Enter()
		p.count(1)
		began := time.Now()
		p.limit.Answered(began, p.answer())
		p.count(-1)
		p.limit.Leave()
	}
}

func (p *publishers) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now += n; n > 0 {
		p.publication++
	}
	p.most = max(p.most, p.now)
}

// during returns how many publications were in flight at most, and how many there were, in the next minute.
func (p *publishers) during() (most, publications int) {
	p.mu.Lock()
	p.most, p.publication = p.now, 0
	p.mu.Unlock()
	<-time.After(time.Minute)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most, p.publication
}

func TestWhatIsInFlightIsLimitedByWhatIsAnswered(t *testing.T) {
	const most = 8
	// after is a server that answers each after so long, however many there are.
	after := func(d time.Duration, err error) func() error {
		return func() error {
			<-time.After(d)
			return err
		}
	}
	// oneByOne is a server that needs so long for each. What is in flight waits for what was before it.
	oneByOne := func(d time.Duration) func() error {
		busy := make(chan struct{}, 1)
		return func() error {
			busy <- struct{}{}
			<-time.After(d)
			<-busy
			return nil
		}
	}
	for _, tt := range []struct {
		name string
		// server is made in the bubble of the test.
		server      func() func() error
		least, most int
		// publications is how many there are in a minute, at least.
		publications int
	}{
		{"a fast server", func() func() error { return after(50*time.Millisecond, nil) }, most, most, 9000},
		{"a far server that is fast", func() func() error { return after(800*time.Millisecond, nil) }, most, most, 590},
		{"a server that is busy", func() func() error { return oneByOne(100 * time.Millisecond) }, 3, 4, 590},
		{"a server that is overloaded by others", func() func() error { return oneByOne(time.Second) }, 1, 2, 59},
		{"a server that does not answer", func() func() error { return after(answerTimeout, errors.New("no answer")) }, 1, 1, 19},
		{"a server that refuses at once", func() func() error { return after(50*time.Millisecond, errors.New("refused")) }, most, most, 9000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &publishers{limit: NewInFlight(most, time.Now), answer: tt.server()}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				for range most {
					running.Go(func() { p.run(ctx) })
				}
				<-time.After(time.Minute)
				if got, publications := p.during(); got < tt.least || got > tt.most || publications < tt.publications {
					t.Errorf("%d are in flight at most, want %d to %d; and %d are published in a minute, want %d", got, tt.least, tt.most, publications,
						tt.publications)
				}
				cancel()
				running.Wait()
			})
		})
	}
}

func TestAServerThatIsFastAgainGetsAsMuchAsBefore(t *testing.T) {
	const most = 8
	now := time.Now()
	limit := NewInFlight(most, func() time.Time { return now })
	answered := func(took time.Duration, err error) {
		began := now
		now = now.Add(took)
		limit.Answered(began, err)
	}
	want := func(when string, want int) {
		t.Helper()
		if limit.limit != want {
			t.Errorf("%s: %d are allowed, want %d", when, limit.limit, want)
		}
	}
	answered(time.Millisecond, nil)
	want("after a prompt answer", most)
	began := now
	now = now.Add(time.Second)
	for range most {
		limit.Answered(began, nil)
	}
	want("after the late answers to all that was in flight", most/2)
	for range 5 {
		answered(answerTimeout, errors.New("no answer"))
	}
	want("without answers", 1)
	for range most * most {
		answered(time.Millisecond, nil)
	}
	want("after prompt answers", most)
	answered(answerTimeout, errors.New("no answer"))
	want("without an answer", most/2)
	for range most * most {
		answered(2*queueing, ErrConflict)
	}
	want("after answers of a far server that another watcher was faster", most)
}

func TestAMissingAnswerIsLateEvenIfTheOthersTakeAlmostAsLong(t *testing.T) {
	now := time.Now()
	limit := NewInFlight(2, func() time.Time { return now })
	answered := func(took time.Duration, err error, want int) {
		t.Helper()
		began := now
		now = now.Add(took)
		if limit.Answered(began, err); limit.limit != want {
			t.Errorf("%d are allowed, want %d", limit.limit, want)
		}
	}
	answered(answerTimeout-200*time.Millisecond, nil, 1)
	answered(answerTimeout-100*time.Millisecond, nil, 2)
	answered(answerTimeout, context.DeadlineExceeded, 1)
}
