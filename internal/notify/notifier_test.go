package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// stream has the streams, which the test has for itself.
type stream struct {
	t   *testing.T
	js  jetstream.JetStream
	bus *bus.Bus
	// parking is how long a message is parked, and timeout is how long a request may take.
	parking, timeout time.Duration
}

func newStream(t *testing.T) *stream {
	t.Helper()
	nc, js := natstest.Streams(t)
	b, err := bus.Open(t.Context(), nc, testCluster, nil)
	testkit.Must(t, err)
	return &stream{t: t, js: js, bus: b, parking: 100 * time.Millisecond, timeout: sendTimeout}
}

func (s *stream) tell(outcomes ...events.Outcome) {
	s.t.Helper()
	for _, o := range outcomes {
		natstest.Publish(s.t, func() error { return errors.Join(s.bus.PublishOutcomes(s.t.Context(), o)...) })
	}
}

// open returns the number of outcomes that a sink has not finished, or -1 if it has no consumer.
func (s *stream) open(sink string) int {
	return s.unfinished(events.StreamHistory, "notify-"+testCluster+"_"+sink)
}

// unfinished returns the number of events that a consumer has not finished, or -1 if it does not exist.
func (s *stream) unfinished(stream, durable string) int {
	stored, err := s.js.Stream(s.t.Context(), stream)
	if err != nil {
		return -1
	}
	consumer, err := stored.Consumer(s.t.Context(), durable)
	if err != nil {
		return -1
	}
	// NumPending may lack what was just stored: the server updates consumers later.
	consumed := consumer.CachedInfo()
	return max(0, int(stored.CachedInfo().State.LastSeq)-int(consumed.Delivered.Stream)) + consumed.NumAckPending
}

// running is a running notifier.
type running struct {
	cancel   context.CancelFunc
	done     chan struct{}
	counters *counters
	log      *testkit.Log
}

func (r *running) stop() {
	r.cancel()
	<-r.done
}

// start runs a notifier and waits until each sink has its consumer.
func (s *stream) start(transport http.RoundTripper, sinks ...string) *running {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "notify.yaml")
	testkit.Must(s.t, os.WriteFile(path, []byte("sinks:\n"+strings.Join(sinks, "")), 0o600))
	return s.startWith(Options{ConfigFile: path, transport: transport})
}

// startWith is like start, with further options besides those for logs and metrics. The sinks send as fast as they can:
// TestASinkGetsNoMoreThanItsRate is about the rate.
func (s *stream) startWith(options Options) *running {
	s.t.Helper()
	r := &running{done: make(chan struct{}), counters: newCounters(), log: &testkit.Log{}}
	options.Logger, options.Meter = r.log.Logger(), r.counters.meter()
	n, err := New(options)
	testkit.Must(s.t, err)
	for _, sink := range n.sinks {
		sink.backoff, sink.parking = wait.Backoff{Duration: 10 * time.Millisecond}, wait.Backoff{Duration: s.parking}
		sink.look, sink.poster.timeout = 10*time.Millisecond, s.timeout
		sink.limiter.SetLimit(rate.Inf)
	}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(s.t.Context())
	go func() {
		defer close(r.done)
		n.Run(ctx, s.bus)
	}()
	s.t.Cleanup(r.stop)
	for _, sink := range n.sinks {
		testkit.Eventually(s.t, "the sink has its consumer", func() bool { return s.open(sink.name) >= 0 })
	}
	return r
}

// numbered returns outcomes with the revisions r<from> to r<to>.
func numbered(from, to int) (outcomes []events.Outcome, revisions []string) {
	for i := from; i <= to; i++ {
		revision := fmt.Sprintf("r%d", i)
		outcomes, revisions = append(outcomes, outcome(events.VerbFailed, "shop", revision)), append(revisions, revision)
	}
	return outcomes, revisions
}

func TestSinksAreToldWhatTheyWantInOrderAndNothingOfThePast(t *testing.T) {
	s, all, shop := newStream(t), newChat(t), newChat(t)
	s.tell(outcome(events.VerbFailed, "shop", "past"))
	r := s.start(all.Client().Transport, sinkOf("all", all, ""), sinkOf("shop", shop, ", verbs: [completed, held], namespaces: [shop]"))
	s.tell(
		outcome(events.VerbStarted, "shop", "r1"), outcome(events.VerbCompleted, "shop", "r1"), outcome(events.VerbCompleted, "bank", "r2"),
		outcome(events.VerbFailed, "shop", "r3"), outcome(events.VerbHeld, "bank", "r4"), outcome(events.VerbHeld, "shop", "r5"),
	)
	testkit.Eventually(t, "every outcome is acknowledged", func() bool { return s.open("all") == 0 && s.open("shop") == 0 })
	testkit.WantEqual(t, "messages to all", []string{"r3", "r4", "r5"}, all.messages())
	testkit.WantEqual(t, "messages to shop", []string{"r1", "r5"}, shop.messages())
	r.stop()
	testkit.WantEqual(t, "metrics", map[string]int64{"all/slack/sent": 3, "shop/slack/sent": 2}, r.counters.results(t))
	if !strings.Contains(r.log.String(), "notification sent") || strings.Contains(r.log.String(), secretPath) {
		t.Errorf("the log is %s", r.log)
	}
}

func TestASinkThatHangsDelaysNeitherTheOthersNorTheEnd(t *testing.T) {
	s, hanging, well := newStream(t), newChat(t), newChat(t)
	hang := make(chan struct{})
	defer close(hang)
	hanging.set(0, hang)
	s.timeout = time.Hour
	r := s.start(well.Client().Transport, sinkOf("hanging", hanging, ""), sinkOf("well", well, ""))
	// These are more than a sink has in flight.
	outcomes, want := numbered(1, 2*maxInFlight)
	s.tell(outcomes...)
	testkit.Eventually(t, "the other sink has sent everything", func() bool { return s.open("well") == 0 })
	testkit.WantEqual(t, "messages", want, well.messages())
	testkit.Eventually(t, "every outcome waits for the sink that hangs", func() bool { return s.open("hanging") == len(outcomes) })
	r.cancel()
	testkit.Receive(t, "the end", r.done, r.log.String)
}

func TestAMessageThatBreaksTheServiceIsNotInTheWayOfTheOthersAndNotLost(t *testing.T) {
	s, c := newStream(t), newChat(t)
	c.choke("r1")
	r := s.start(c.Client().Transport, sinkOf("team", c, ""))
	outcomes, want := numbered(1, 5)
	s.tell(outcomes...)
	testkit.Eventually(t, "the others are sent", func() bool { return len(c.messages()) == len(outcomes)-1 })
	// A message arrives before its outcome is acknowledged.
	testkit.Eventually(t, "all are finished but the one that waits", func() bool { return s.open("team") == 1 })
	c.set(0, nil)
	testkit.Eventually(t, "every outcome is acknowledged", func() bool { return s.open("team") == 0 })
	testkit.WantEqual(t, "messages", append(want[1:], want[0]), c.messages())
	r.stop()
	if r.counters.results(t)["team/slack/parked"] == 0 {
		t.Error("no attempt is counted as parked")
	}
}

func TestNothingIsLostOverARestart(t *testing.T) {
	s, c := newStream(t), newChat(t)
	hang := make(chan struct{})
	defer close(hang)
	c.set(0, hang)
	r := s.start(c.Client().Transport, sinkOf("team", c, ""))
	before, want := numbered(1, maxInFlight+10)
	s.tell(before...)
	testkit.Eventually(t, "a message is under way", func() bool { return c.requests() >= 1 }) // It times out while the others are told.
	r.stop()
	c.set(0, nil)
	between, further := numbered(maxInFlight+11, maxInFlight+20)
	s.tell(between...)
	want = append(want, further...)

	s.start(c.Client().Transport, sinkOf("team", c, ""))
	testkit.Eventually(t, "every outcome is acknowledged", func() bool { return s.open("team") == 0 })
	got := map[string]bool{}
	for _, message := range c.messages() {
		got[message] = true
	}
	for _, revision := range want {
		if !got[revision] {
			t.Errorf("no message has %s", revision)
		}
	}
}
