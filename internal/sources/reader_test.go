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
	"unsafe"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// stateOf is a stream whose first reads fail.
type stateOf struct {
	failures int
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

func (s *stateOf) Last(context.Context, string) (events.Stored, error) {
	if s.last != nil {
		return events.Stored{}, s.last
	}
	return s.stored[0], nil
}

func readerOf(bus stateReader) (*ledgerReader, *lockedBuffer) {
	log := &lockedBuffer{}
	return &ledgerReader{
		bus: bus, cluster: testCluster, kinds: []events.Kind{testSource.Kind}, ledger: newLedger(),
		now: func() time.Time { return epoch }, log: slog.New(slog.NewJSONHandler(log, nil)),
	}, log
}

// unreadable is an event of the source that cannot be read.
func unreadable(source events.Source, seq uint64) events.Stored {
	return events.Stored{Seq: seq, Subject: events.Subject(testCluster, source), Err: errors.New("no event")}
}

func TestTheLastEventsAreReadAgainUntilTheyCanBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := &stateOf{failures: 8, stored: []events.Stored{unreadable(testSource, 5)}}
		reader, log := readerOf(bus)
		if !reader.readAll(t.Context()) {
			t.Fatal("it gave up")
		}
		wantEqual(t, "filters", []string{events.KindFilter(testCluster, events.KindSecret)}, bus.filters)
		for i, seconds := range []int{1, 2, 4, 8, 16, 30, 30, 30} {
			least := time.Duration(seconds) * time.Second
			if waited := bus.tries[i+1].Sub(bus.tries[i]); waited < least || waited > least+least/10 {
				t.Errorf("try %d came after %s, want %s and at most a tenth more", i+1, waited, least)
			}
		}
		if times := strings.Count(log.String(), "cannot read the stream"); times != 8 {
			t.Errorf("it is said %d times, want 8", times)
		}
		if entry := reader.ledger.get(testSource); entry == nil || entry.Seq != 5 || entry.IsReadable() {
			t.Errorf("the ledger has %+v", entry)
		}
	})
}

func TestRefreshTakesWhatTheStreamHas(t *testing.T) {
	known := lastOf(1, events.VerbObserved)
	for _, tt := range []struct {
		name string
		bus  stateOf
		want *kinds.LastEvent
		err  bool
	}{
		{
			"what it was as lost, where the stream has lost it",
			stateOf{last: events.ErrNotFound},
			lostAt(0, lastOf(0, events.VerbObserved)), false,
		},
		{"what it was, where the stream does not answer", stateOf{last: errors.New("no answer")}, known, true},
		{
			"what it was with another sequence, where it cannot be read",
			stateOf{stored: []events.Stored{unreadable(testSource, 7)}},
			lastOf(7, events.VerbObserved), false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reader, _ := readerOf(&tt.bus)
			reader.ledger.set(testSource, known)
			if err := reader.refresh(t.Context(), testSource); (err != nil) != tt.err {
				t.Errorf("error %v", err)
			}
			wantEqual(t, "the ledger has", tt.want, reader.ledger.get(testSource), everyField)
		})
	}
}

func TestTheLedgerKeepsNoPartOfAHeader(t *testing.T) {
	header := "shop db"
	source := events.Source{Kind: events.KindSecret, Namespace: header[:4], Name: header[5:]}
	l := newLedger()
	l.set(source, lastOf(1, events.VerbObserved))
	begin := uintptr(unsafe.Pointer(unsafe.StringData(header)))
	for _, text := range []string{l.sources()[0].Namespace, l.sources()[0].Name} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(text))); at >= begin && at < begin+uintptr(len(header)) {
			t.Errorf("%q keeps the header in memory", text)
		}
	}
}

func TestTombstonesAreForgottenWhenTheStreamHasDroppedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, _ := readerOf(&stateOf{})
		known := reader.ledger
		reader.now = time.Now
		names := func() map[string]bool {
			held := make(map[string]bool)
			for source := range known.all() {
				held[source.Name] = true
			}
			return held
		}
		for name, verb := range map[string]events.Verb{"there": events.VerbChanged, "gone": events.VerbDeleted} {
			source := testSource
			source.Name = name
			known.set(source, mustLast(t, events.Change{Verb: verb, Fingerprint: fingerprint, Time: time.Now().Add(time.Minute)}))
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { reader.forgetTombstones(ctx) })
		<-time.After(events.TombstoneTTL + time.Second)
		wantEqual(t, "before they are dropped", map[string]bool{"there": true, "gone": true}, names())
		<-time.After(tombstoneInterval)
		wantEqual(t, "after they were dropped", map[string]bool{"there": true}, names())
		stop()
		running.Wait()
	})
}
