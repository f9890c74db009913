package events

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

func readState(t *testing.T, from anyReader, filters []string) map[string]Stored {
	t.Helper()
	var state map[string]Stored
	testkit.Await(t, "the state is read", func(ctx context.Context) bool {
		state = make(map[string]Stored)
		err := from.State(ctx, filters, func(s Stored) error {
			state[s.Subject] = s
			return nil
		})
		if err != nil && !IsSilence(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return state
}

func TestStateIsTheLastEventOfEverySubjectThatMatches(t *testing.T) {
	b := sharedServer(t).bus()
	want := make(map[string]uint64)
	for i := range 300 {
		c := version(fmt.Sprintf("s%d", i), "1")
		seq := mustPublish(t, b, c, 0)
		if i%3 == 0 {
			seq = mustPublish(t, b, version(c.Source.Name, "2"), seq)
		}
		want[Subject(testCluster, c.Source)] = seq
	}
	mustTell(t, b, outcome())
	state := readState(t, b, SourceFilters(testCluster))
	if len(state) != len(want) {
		t.Errorf("got %d events, want %d", len(state), len(want))
	}
	for subject, seq := range want {
		if _, err := state[subject].Change(); err != nil || state[subject].Seq != seq {
			t.Errorf("%s: got sequence %d, %v; want %d", subject, state[subject].Seq, err, seq)
		}
	}
	if state := readState(t, b, []string{OutcomeFilter(testCluster)}); len(state) != 1 {
		t.Errorf("got %d outcomes, want 1", len(state))
	}
}

// filtered notes the filters of the consumers of a stream.
type filtered struct {
	jetstream.Stream
	filters [][]string
}

func (f *filtered) OrderedConsumer(ctx context.Context, config jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	f.filters = append(f.filters, config.FilterSubjects)
	return f.Stream.OrderedConsumer(ctx, config)
}

func TestStateHasAConsumerForEachFilterOfWhatIsThere(t *testing.T) {
	b := sharedServer(t).bus()
	app := version("app", "1")
	app.Source.Kind = KindConfigMap
	mustPublish(t, b, version("db", "1"), 0)
	mustPublish(t, b, app, 0)
	changes := &filtered{Stream: b.changes}
	b.changes = changes
	secrets, configMaps := KindFilter(testCluster, KindSecret), KindFilter(testCluster, KindConfigMap)
	if state := readState(t, b, []string{secrets, KindFilter(testCluster, KindCertificate), configMaps}); len(state) != 2 {
		t.Errorf("got %v, want both", state)
	}
	want := [][]string{{secrets}, {configMaps}}
	wantEqual(t, "filters", want, changes.filters)
}

func TestTheOldestEventIsTheOneThatIsThereForLongest(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	filters := SourceFilters(testCluster)
	oldest := func() (time.Time, error) { return b.Oldest(t.Context(), filters) }
	if at, err := answer(t, oldest); !errors.Is(err, ErrNotFound) {
		t.Errorf("of an empty stream: got %s (%v)", at, err)
	}
	mustTell(t, b, outcome())
	first := mustPublish(t, b, version("db", "1"), 0)
	mustPublish(t, b, version("web", "1"), 0)
	want := func(name, resourceVersion string) {
		t.Helper()
		stored, err := lastOn(t, b, Subject(testCluster, version(name, resourceVersion).Source))
		must(t, err)
		if at, err := answer(t, oldest); err != nil || !at.Equal(stored.Time) {
			t.Errorf("got %s (%v), want %s, when %s came", at, err, stored.Time, name)
		}
	}
	want("db", "1")
	mustPublish(t, b, version("db", "2"), first)
	want("web", "1") // The first event is superseded.
}

func TestStateEndsWhilePublishing(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	const sources = 100
	var last [sources]uint64
	for i := range sources {
		last[i] = mustPublish(t, b, version(fmt.Sprintf("s%d", i), "1"), 0)
	}
	publishing, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var changed atomic.Int64
	publisher := s.bus()
	wg.Go(func() {
		for v := 2; publishing.Err() == nil; v++ {
			for i := range sources {
				c := version(fmt.Sprintf("s%d", i), fmt.Sprint(v))
				seq, err := publisher.PublishChange(publishing, c, last[i])
				for IsSilence(err) {
					seq, err = publisher.PublishChange(publishing, c, last[i])
				}
				if publishing.Err() != nil {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				last[i] = seq
				changed.Add(1)
			}
		}
	})
	defer wg.Wait()
	defer stop()
	testkit.Eventually(t, "the first is published again", func() bool { return changed.Load() > 0 || t.Failed() })
	for range 20 {
		state := readState(t, b, SourceFilters(testCluster))
		if len(state) != sources {
			t.Fatalf("the state has %d sources, want %d", len(state), sources)
		}
		for _, stored := range state {
			if _, err := stored.Change(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestStateEndsWhenItIsInterrupted(t *testing.T) {
	const sources = 1500 // More than the iterator fetches at once, so that it has to ask the server again.
	enough := errors.New("enough")
	for _, tt := range []struct {
		name string
		// interrupt is called at the first event. A nil error reads on. The server may be started again on an empty store.
		interrupt func(s *ownServer, empty string, cancel func()) error
		// ends reports whether this is how it is to end, where ended is the error of the context.
		ends func(err, ended error, count int) bool
	}{
		{"by its reader", func(*ownServer, string, func()) error { return enough }, func(err, _ error, count int) bool {
			return errors.Is(err, enough) && count == 1
		}},
		{"when what is awaited vanishes, so that no message is marked as the last", func(s *ownServer, _ string, _ func()) error {
			purge(s.t, s.jetstream())
			return nil
		}, func(err, _ error, count int) bool { return err == nil && count < sources }},
		{"when the stream is deleted", func(s *ownServer, _ string, _ func()) error {
			return s.jetstream().DeleteStream(s.t.Context(), StreamChanges)
		}, func(err, ended error, _ int) bool { return err != nil && ended == nil }},
		{"with its context while the server is away", func(s *ownServer, _ string, cancel func()) error {
			s.Shutdown()
			time.AfterFunc(200*time.Millisecond, cancel)
			return nil
		}, func(err, _ error, _ int) bool { return errors.Is(err, context.Canceled) }},
		{"with its context when the server comes back without the stream: the iterator would retry for longer", func(s *ownServer, empty string, cancel func()) error {
			s.restart(func() { s.dir = empty })
			time.AfterFunc(time.Second, cancel)
			return nil
		}, func(err, ended error, _ int) bool { return err != nil && !errors.Is(ended, context.DeadlineExceeded) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			empty := testkit.StoreDir(t) // It is removed after the server has stopped.
			s := startServer(t)
			b := s.bus()
			fill(t, s.jetstream(), sources)
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			count := 0
			err := b.State(ctx, SourceFilters(testCluster), func(Stored) error {
				if count++; count == 1 {
					return tt.interrupt(s, empty, cancel)
				}
				return nil
			})
			if count == 0 || !tt.ends(err, ctx.Err(), count) {
				t.Errorf("got %v after %d of %d events", err, count, sources)
			}
		})
	}
}
