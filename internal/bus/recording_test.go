package bus

import (
	"context"
	"testing"
	"time"

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
		msg, of, err := b.message(c.Event, c.Subject())
		testkit.Must(t, err)
		published(t, func() error {
			return errIn(b.store(t.Context(), events.StreamChanges, msg.Subject, msg, of+id, options...))
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
