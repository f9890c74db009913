package bus

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// idsOn returns the ids of the messages of a stream, in order.
func idsOn(t *testing.T, s *testServer, stream string) []string {
	t.Helper()
	var ids []string
	for _, raw := range messages(t, s.jetstream(), stream) {
		ids = append(ids, raw.Header.Get(jetstream.MsgIDHeader))
	}
	return ids
}

// HISTORY is the test here, which sees both messages before it answers.
func TestAChangeGoesToBothStreamsAtOnceAndWaitsForBothAnswers(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	var err error
	b.js, err = jetstream.New(b.js.Conn(), jetstream.WithPublishAsyncTimeout(testkit.Patience))
	testkit.Must(t, err)
	testkit.Must(t, s.jetstream().DeleteStream(t.Context(), events.StreamHistory))
	nc := s.connect()
	sent, err := nc.SubscribeSync("keyturn.>")
	testkit.Must(t, err)
	testkit.Must(t, nc.FlushTimeout(testkit.Patience))

	done := make(chan error, 1)
	go func() {
		_, err := b.PublishChange(t.Context(), version("db", "1"), 0)
		done <- err
	}()
	var came [2]*nats.Msg
	for i, want := range []string{"keyturn.history.v1.prod-eu.secret.shop.db", "keyturn.v1.prod-eu.secret.shop.db"} {
		came[i], err = sent.NextMsg(testkit.Patience)
		testkit.Must(t, err)
		if came[i].Subject != want {
			t.Errorf("message %d is on %s, want %s", i+1, came[i].Subject, want)
		}
	}
	testkit.Eventually(t, "CHANGES has it", func() bool { return len(idsOn(t, s, events.StreamChanges)) == 1 })
	select {
	case err := <-done:
		t.Errorf("it is published before HISTORY has answered: %v", err)
	default:
	}
	testkit.Must(t, came[0].Respond([]byte(`{"stream":"HISTORY","seq":1}`)))
	testkit.Must(t, testkit.Receive(t, "it is published", done))
	if len(b.owed) > 0 {
		t.Errorf("HISTORY lacks %v", b.owed)
	}
}

func TestWhatHistoryDoesNotTakeIsStoredThereLaterAndInOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		// later is what happens when HISTORY is back.
		later func(t *testing.T, b *Bus, seq uint64)
		want  []string
	}{
		{"before the next change of its source", func(t *testing.T, b *Bus, seq uint64) {
			t.Helper()
			mustPublish(t, b, version("db", "2"), seq)
		}, []string{"prod-eu/uid-db/1", "prod-eu/uid-db/2"}},
		{"without one", func(t *testing.T, b *Bus, _ uint64) {
			t.Helper()
			mustPublish(t, b, version("other", "1"), 0)
			b.settleAll(t.Context())
			mustPublish(t, b, version("third", "1"), 0)
		}, []string{"prod-eu/uid-other/1", "prod-eu/uid-db/1", "prod-eu/uid-third/1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sharedServer(t)
			b, log := s.bus(), &testkit.Log{}
			b.logger = log.Logger()
			testkit.Must(t, s.jetstream().DeleteStream(t.Context(), events.StreamHistory))
			seq := mustPublish(t, b, version("db", "1"), 0)
			for name, expected := range map[string]uint64{"db": seq, "other": 0} {
				if _, err := answered(t, b, version(name, "2"), expected); err == nil {
					t.Errorf("another change of %s is published while HISTORY takes none", name)
				}
			}
			testkit.WantEqual(t, "on CHANGES", []string{"prod-eu/uid-db/1"}, idsOn(t, s, events.StreamChanges))
			b.settleAll(t.Context())
			for _, said := range []string{"the history may lack a change", "the history still lacks a change"} {
				if n := strings.Count(log.String(), said); n != 1 {
					t.Errorf("%q is logged %d times, want once:\n%s", said, n, log)
				}
			}

			s.declare()
			tt.later(t, b, seq)
			testkit.WantEqual(t, "on HISTORY", tt.want, idsOn(t, s, events.StreamHistory))
			if len(b.owed) > 0 {
				t.Errorf("HISTORY still lacks %v", b.owed)
			}
		})
	}
}

// If two watchers send a change at once, a stream with replicas stores one of the messages, and refuses the other until it has.
func TestWhatAnotherWatcherIsStoringOnHISTORYIsNotOwed(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	testkit.Must(t, s.jetstream().DeleteStream(t.Context(), events.StreamHistory))
	nc := s.connect()
	testkit.Must(t, errIn(nc.Subscribe("keyturn.history.>", func(msg *nats.Msg) {
		if err := msg.Respond([]byte(`{"stream":"HISTORY","seq":0,"error":{"code":409,"err_code":10158,"description":"in process"}}`)); err != nil {
			t.Error(err)
		}
	})))
	testkit.Must(t, nc.FlushTimeout(testkit.Patience))

	mustPublish(t, b, version("db", "1"), 0)
	if len(b.owed) > 0 {
		t.Errorf("HISTORY lacks %v", b.owed)
	}
	published(t, func() error {
		return b.StateAtStart(t.Context(), events.SourceFilters(testCluster), func(events.Stored) error { return nil })
	})
}

// startOn reads the state with a new bus, as a watcher does that begins.
func startOn(t *testing.T, s *testServer) {
	t.Helper()
	b := s.bus()
	testkit.Await(t, "the state is read", func(ctx context.Context) bool {
		err := b.StateAtStart(ctx, events.SourceFilters(testCluster), func(events.Stored) error { return nil })
		if err != nil && !IsSilence(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}

func TestAWatcherThatBeginsStoresOnHISTORYWhatIsOnCHANGESAlone(t *testing.T) {
	// alone stores a change on CHANGES, as a crash can leave it.
	alone := func(t *testing.T, b *Bus, c events.Change, id string, options ...jetstream.PublishOpt) {
		t.Helper()
		msg, of, err := b.message(c.Encode)
		testkit.Must(t, err)
		published(t, func() error {
			return errIn(b.store(t.Context(), msg, of+id, options...))
		})
	}
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, b *Bus)
		want   []string
	}{
		{"a change", func(t *testing.T, b *Bus) {
			t.Helper()
			alone(t, b, version("db", "1"), "")
		}, []string{"prod-eu/uid-db/1"}},
		{"a change that superseded one which HISTORY has", func(t *testing.T, b *Bus) {
			t.Helper()
			mustPublish(t, b, version("db", "1"), 0)
			alone(t, b, version("db", "2"), "")
		}, []string{"prod-eu/uid-db/1", "prod-eu/uid-db/2"}},
		{"a change that is there again, under an id of its own", func(t *testing.T, b *Bus) {
			t.Helper()
			mustPublish(t, b, version("db", "1"), 0)
			alone(t, b, version("db", "1"), "@1")
		}, []string{"prod-eu/uid-db/1", "prod-eu/uid-db/1@1"}},
		{"a deletion, which does not expire there", func(t *testing.T, b *Bus) {
			t.Helper()
			gone := version("db", "1")
			gone.Verb = events.VerbDeleted
			alone(t, b, gone, "", jetstream.WithMsgTTL(events.TombstoneTTL))
		}, []string{"prod-eu/uid-db/1/deleted"}},
		{"nothing that HISTORY has", func(t *testing.T, b *Bus) {
			t.Helper()
			mustPublish(t, b, version("db", "1"), 0)
		}, []string{"prod-eu/uid-db/1"}},
		{"nothing that is no change", func(t *testing.T, b *Bus) {
			t.Helper()
			published(t, func() error {
				return errIn(b.js.Publish(t.Context(), "keyturn.v1.prod-eu.secret.shop.db", []byte("no event"), jetstream.WithMsgID("x")))
			})
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sharedServer(t)
			tt.before(t, s.bus())
			for range 2 {
				startOn(t, s)
				testkit.WantEqual(t, "on HISTORY", tt.want, idsOn(t, s, events.StreamHistory))
			}
			for _, raw := range messages(t, s.jetstream(), events.StreamHistory) {
				if ttl := raw.Header.Get(jetstream.MsgTTLHeader); ttl != "" {
					t.Errorf("in the history %s expires after %s", raw.Subject, ttl)
				}
			}
		})
	}
}

// HISTORY is the test here, which answers only once it has both.
func TestAWatcherThatBeginsWaitsForManyAnswersAtOnce(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	var err error
	b.js, err = jetstream.New(b.js.Conn(), jetstream.WithPublishAsyncTimeout(testkit.Patience))
	testkit.Must(t, err)
	for _, name := range []string{"db", "web"} {
		mustPublish(t, b, version(name, "1"), 0)
	}
	testkit.Must(t, s.jetstream().DeleteStream(t.Context(), events.StreamHistory))
	nc := s.connect()
	sent, err := nc.SubscribeSync("keyturn.history.>")
	testkit.Must(t, err)
	testkit.Must(t, nc.FlushTimeout(testkit.Patience))

	done := make(chan error, 1)
	go func() {
		done <- b.StateAtStart(t.Context(), events.SourceFilters(testCluster), func(events.Stored) error { return nil })
	}()
	var came [2]*nats.Msg
	for i := range came {
		came[i], err = sent.NextMsg(testkit.Patience)
		testkit.Must(t, err)
	}
	for _, msg := range came {
		testkit.Must(t, msg.Respond([]byte(`{"stream":"HISTORY","seq":1}`)))
	}
	testkit.Must(t, testkit.Receive(t, "the state is read", done))
}

// HISTORY has forgotten the id of such a change, and would store it twice.
func TestAWatcherThatBeginsLeavesOutWhatIsOlder(t *testing.T) {
	s := sharedServer(t)
	config := Declared(1)[1]
	config.Duplicates = 100 * time.Millisecond
	testkit.Must(t, errIn(s.jetstream().UpdateStream(t.Context(), config)))
	b := s.bus()
	mustPublish(t, b, version("db", "1"), 0)
	stored, err := lastOn(t, b, "keyturn.v1.prod-eu.secret.shop.db")
	testkit.Must(t, err)
	testkit.Eventually(t, "its id is forgotten", func() bool { return time.Since(stored.Time) > 2*config.Duplicates })
	startOn(t, s)
	testkit.WantEqual(t, "on HISTORY", []string{"prod-eu/uid-db/1"}, idsOn(t, s, events.StreamHistory))
}
