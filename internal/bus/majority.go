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
	majorityInterval = time.Second     // the pause between two requests
	majorityTimeout  = 3 * time.Second // the timeout of a request
	mostSilent       = 6 * time.Second // the longest normal time without a response, for example during an election
	// noStream is a stream that does not exist. Only the leader of the whole cluster responds to a request for it, and only a majority elects this
	// leader. For an existing stream, its own leader would respond.
	noStream = "NONE"
)

// Majority detects whether the NATS server of a connection has contact with most servers of its cluster. Without, clients of that server can neither
// read nor publish, while clients of other servers may. Create one with NewMajority.
type Majority struct {
	js  jetstream.JetStream
	now func() time.Time
	// since is when the first request without a response was made after the last response, in Unix nanoseconds, or 0.
	since atomic.Int64
}

// NewMajority returns a Majority. Call Run to start it.
func NewMajority(js jetstream.JetStream) *Majority { return &Majority{js: js, now: time.Now} }

// Run makes requests until ctx is done.
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

// Lost returns an error if there was no response for some seconds.
func (m *Majority) Lost() error {
	since := m.since.Load()
	if since == 0 || m.now().Sub(time.Unix(0, since)) < mostSilent {
		return nil
	}
	return errors.New("the nats server has no contact with most servers of its cluster, or does not answer")
}
