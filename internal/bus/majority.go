package bus

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/kube"
)

const (
	majorityInterval = time.Second     // the pause between two questions
	majorityTimeout  = 3 * time.Second // how long an answer may take
	mostSilent       = 6 * time.Second // how long there may be none, for example during an election
	// noStream is a stream that does not exist. Only the leader of the whole cluster answers that, and only a majority elects it. The leader of a
	// stream would answer about that one.
	noStream = "NONE"
)

// Majority knows whether the NATS server of a connection has contact with most servers of its cluster. Clients of a server that has not can neither
// read nor publish, while clients of other servers may. Create one with NewMajority.
type Majority struct {
	js  jetstream.JetStream
	now func() time.Time
	// since is when the first question without an answer was asked after the last answer, in Unix nanoseconds, or 0.
	since atomic.Int64
}

// NewMajority returns a Majority that has asked nothing yet.
func NewMajority(js jetstream.JetStream) *Majority { return &Majority{js: js, now: time.Now} }

// Run asks the server until ctx is done.
func (m *Majority) Run(ctx context.Context) {
	for {
		m.ask(ctx)
		if !kube.Sleep(ctx, majorityInterval) {
			return
		}
	}
}

func (m *Majority) ask(ctx context.Context) {
	began := m.now()
	ctx, cancel := context.WithTimeout(ctx, majorityTimeout)
	defer cancel()
	if _, err := m.js.Stream(ctx, noStream); err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
		m.since.Store(0)
		return
	}
	m.since.CompareAndSwap(0, began.UnixNano())
}

// Lost returns an error if there has been no answer for some seconds.
func (m *Majority) Lost() error {
	since := m.since.Load()
	if since == 0 || m.now().Sub(time.Unix(0, since)) < mostSilent {
		return nil
	}
	return errors.New("the nats server has no contact with most servers of its cluster, or does not answer")
}
