package bus

import (
	"bytes"
	"errors"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
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
		{"nobody asks for more", info(2, 1, 0), 0, false, errUnasked},
		{"there is none for long", nil, lostAfter + time.Second, false, errLost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, since := &Reader{lostAfter: lostAfter}, time.Now().Add(-tt.silent)
				last := &jetstream.MsgMetadata{Consumer: "c", Sequence: jetstream.SequencePair{Consumer: 2}}
				if got, err := r.caughtUp(t.Context(), lagging{info: tt.info}, last, since); got != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("it has caught up: %t, %v; want %t, %v", got, err, tt.want, tt.err)
				}
			})
		})
	}
}

// earlyDialer makes connections on which some requests for messages have no responder, as on a server that has not learned of the consumer yet.
type earlyDialer struct {
	*testing.T
	// from and upTo are the numbers of those requests.
	from, upTo int32
	asked      atomic.Int32
}

func (d *earlyDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(d.Context(), network, address)
	return &earlyConn{conn, d}, err
}

type earlyConn struct {
	net.Conn
	dialer *earlyDialer
}

func (c *earlyConn) Write(p []byte) (int, error) {
	if request := []byte(".MSG.NEXT.CHANGES."); bytes.Contains(p, request) {
		if n := c.dialer.asked.Add(1); c.dialer.from <= n && n <= c.dialer.upTo {
			p = bytes.Replace(p, request, []byte(".MSG.NEXT.NOWHERE."), 1)
		}
	}
	return c.Conn.Write(p)
}

func TestAReadingAsksAgainWhenItsRequestFoundNobody(t *testing.T) {
	const stored = 600 // A request is for 500.
	tests := []struct {
		name       string
		from, upTo int32
		read       int
		err        error
	}{
		{name: "the first two", from: 1, upTo: 2, read: stored},
		{name: "all", from: 1, upTo: math.MaxInt32, err: errLost},
	}
	s := sharedServer(t)
	fill(t, s.jetstream(), stored)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dialer := &earlyDialer{T: t, from: tt.from, upTo: tt.upTo}
			nc, err := Connect(t.Context(), ConnectOptions{URL: s.url(), Cluster: testCluster, Name: t.Name()}, nats.SetCustomDialer(dialer))
			testkit.Must(t, err)
			t.Cleanup(nc.Close)
			b, err := Open(t.Context(), nc, testCluster, nil)
			testkit.Must(t, err)
			b.stall, b.lostAfter = 50*time.Millisecond, testkit.Patience
			if tt.err != nil {
				b.lostAfter = time.Second
			}
			read := make(map[string]int)
			err = b.State(t.Context(), events.SourceFilters(testCluster), func(s events.Stored) error { read[s.Subject]++; return nil })
			if !errors.Is(err, tt.err) || len(read) != tt.read {
				t.Errorf("%d subjects were read, and the error is %v, want %d and %v", len(read), err, tt.read, tt.err)
			}
			for subject, times := range read {
				if times != 1 {
					t.Errorf("%s was read %d times", subject, times)
				}
			}
			if asked := dialer.asked.Load(); asked <= tt.upTo && tt.err == nil {
				t.Errorf("the server was asked %d times, so no request was repeated", asked)
			}
		})
	}
}
