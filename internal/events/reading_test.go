package events

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Otherwise it would wait forever: the server does not resend anything, whether it has sent everything or has lost the consumer.
func TestAReadingThatHasMissedAMessageEndsWithAnError(t *testing.T) {
	info := func(delivered, pending uint64, waiting int) *jetstream.ConsumerInfo {
		return &jetstream.ConsumerInfo{Name: "c", Delivered: jetstream.SequenceInfo{Consumer: delivered}, NumPending: pending, NumWaiting: waiting}
	}
	for _, tt := range []struct {
		name   string
		info   *jetstream.ConsumerInfo
		silent time.Duration
		want   bool
		err    error
	}{
		{"everything was received", info(2, 0, 1), 0, true, nil},
		{"a message is on its way", info(3, 0, 1), 0, false, nil},
		{"a message does not come", info(3, 0, 1), lostAfter + time.Second, false, errLost},
		{"more is asked for", info(2, 1, 1), 0, false, nil},
		{"nobody asks for more", info(2, 1, 0), 0, false, errUnasked},
		{"there is no answer", nil, 0, false, nil},
		{"there is none for long", nil, lostAfter + time.Second, false, errLost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reading{lostAfter: lostAfter, since: time.Now().Add(-tt.silent)}
				last := &jetstream.MsgMetadata{Consumer: "c", Sequence: jetstream.SequencePair{Consumer: 2}}
				if got, err := r.caughtUp(t.Context(), lagging{info: tt.info}, last); got != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("it has caught up: %t, %v; want %t, %v", got, err, tt.want, tt.err)
				}
			})
		})
	}
}
