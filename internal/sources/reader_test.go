package sources

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// stateOf is a stream whose first reads fail.
type stateOf struct {
	failures int
	starts   int // how many of the tries were as the watcher begins
	tries    []time.Time
	filters  []string
	stored   []events.Stored
	last     error
}

func (s *stateOf) State(_ context.Context, filters []string, fn func(events.Stored) error) error {
	s.tries, s.filters = append(s.tries, time.Now()), filters
	if len(s.tries) <= s.failures {
		return errors.New("no answer")
	}
	for _, stored := range s.stored {
		if err := fn(stored); err != nil {
			return err
		}
	}
	return nil
}

func (s *stateOf) StateAtStart(ctx context.Context, filters []string, fn func(events.Stored) error) error {
	s.starts++
	return s.State(ctx, filters, fn)
}

func (s *stateOf) Last(context.Context, string) (events.Stored, error) {
	if s.last != nil {
		return events.Stored{}, s.last
	}
	return s.stored[0], nil
}

func readerOf(b stateReader) (*ledgerReader, *testkit.Log) {
	log := &testkit.Log{}
	return &ledgerReader{
		bus: b, cluster: testCluster, kinds: []events.Kind{testSource.Kind}, ledger: newLedger(),
		now: func() time.Time { return epoch }, log: slog.New(slog.NewJSONHandler(log, nil)),
	}, log
}

// unreadable is an event of the source that cannot be read.
func unreadable(source events.Source, seq uint64) events.Stored {
	return events.Stored{Seq: seq, Subject: events.Subject(testCluster, source), Err: errors.New("no event")}
}

func TestTheLastEventsAreReadAgainUntilTheyCanBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &stateOf{failures: 8, stored: []events.Stored{unreadable(testSource, 5)}}
		reader, log := readerOf(b)
		if !reader.readAll(t.Context()) {
			t.Fatal("it gave up")
		}
		testkit.WantEqual(t, "filters", []string{events.KindFilter(testCluster, events.KindSecret)}, b.filters)
		for i, seconds := range []int{1, 2, 4, 8, 16, 30, 30, 30} {
			least := time.Duration(seconds) * time.Second
			if waited := b.tries[i+1].Sub(b.tries[i]); waited < least || waited > least+least/10 {
				t.Errorf("try %d came after %s, want %s and at most a tenth more", i+1, waited, least)
			}
		}
		if b.starts != len(b.tries) {
			t.Errorf("%d of %d tries complete the history", b.starts, len(b.tries))
		}
		if times := strings.Count(log.String(), "cannot read the stream"); times != 8 {
			t.Errorf("it is said %d times, want 8", times)
		}
		if entry := reader.ledger.get(testSource); entry == nil || entry.Seq != 5 || entry.IsReadable() {
			t.Errorf("the ledger has %+v", entry)
		}
	})
}

func TestTombstonesAreForgottenWhenTheStreamHasDroppedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, _ := readerOf(&stateOf{})
		reader.now = time.Now
		for source, verb := range map[events.Source]events.Verb{testSource: events.VerbChanged, otherSource: events.VerbDeleted} {
			reader.ledger.set(source, mustLast(t, events.Change{Verb: verb, Fingerprint: fingerprint, Time: time.Now().Add(time.Minute)}))
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { reader.forgetTombstones(ctx) })
		<-time.After(events.TombstoneTTL + time.Second)
		if known := reader.ledger.all(); len(known) != 2 {
			t.Errorf("before the stream drops the tombstone: %v", known)
		}
		<-time.After(tombstoneInterval)
		if known := reader.ledger.all(); len(known) != 1 || known[testSource] == nil {
			t.Errorf("after that: %v", known)
		}
		stop()
		running.Wait()
	})
}
