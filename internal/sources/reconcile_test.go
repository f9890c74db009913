package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/keyturn/keyturn/internal/events"
)

// publications is a stream on which another watcher is faster at first.
type publications struct {
	conflicts int
	err       error
	published []events.Change
	expected  []uint64
}

func (p *publications) PublishChange(_ context.Context, change events.Change, expected uint64) (uint64, error) {
	p.published, p.expected = append(p.published, change), append(p.expected, expected)
	if len(p.published) <= p.conflicts {
		return 0, fmt.Errorf("publishing: %w", events.ErrConflict)
	}
	return uint64(10 + len(p.published)), p.err
}

func reconcilerOf(t *testing.T, bus *publications, assess assessor) (*reconciler, *lockedBuffer) {
	t.Helper()
	reader, log := readerOf(&stateOf{stored: []events.Stored{unreadable(testSource, 9)}})
	return &reconciler{
		cluster: testCluster, now: func() time.Time { return epoch }, assessors: map[events.Kind]assessor{testSource.Kind: assess},
		ledger: reader.ledger, reader: reader, throttle: newThrottle(0, time.Now, slog.New(slog.DiscardHandler)), settled: func() bool { return true },
		doubted: func(events.Source) bool { return false }, hasListed: func(events.Kind) bool { return true },
		sightings: newSightings(), notice: func(source events.Source) { t.Errorf("%s is queued again", source) },
		publisher: &publisher{
			bus: bus, ledger: reader.ledger, metrics: unmeasured(t, reader.ledger), tracer: tracenoop.NewTracerProvider().Tracer(""),
			log: slog.New(slog.NewJSONHandler(log, nil)),
		},
	}, log
}

// always assesses a source as changed.
func always(_ events.Source, _ *lastEvent, created bool) (events.Change, bool) {
	return events.Change{Verb: events.VerbChanged, UID: "u", ResourceVersion: "1", ChangedAt: "1", Fingerprint: printed("0a", "1"), Created: created}, true
}

func TestReconcilePublishesTheSuccessorOfTheLastEvent(t *testing.T) {
	bus := &publications{}
	r, log := reconcilerOf(t, bus, always)
	must(t, r.reconcile(t.Context(), testSource, &queueEntry{at: epoch, created: true}))
	r.ledger.set(testSource, unreadableEvent(4))
	must(t, r.reconcile(t.Context(), testSource, &queueEntry{at: epoch}))
	if bus.expected[0] != 0 || bus.expected[1] != 4 {
		t.Errorf("published as the successors of %v, want 0 and 4", bus.expected)
	}
	first := bus.published[0]
	if first.Cluster != testCluster || first.Source != testSource || !first.Time.Equal(epoch) || !first.Created || bus.published[1].Created {
		t.Errorf("published %+v", bus.published)
	}
	if entry := r.ledger.get(testSource); entry.Seq != 12 || entry.Verb() != events.VerbChanged {
		t.Errorf("the ledger has %+v", entry)
	}
	if times := strings.Count(log.String(), `"msg":"change published"`); times != 2 {
		t.Errorf("it is logged %d times, want twice", times)
	}
}

func TestWhatWasNoticedIsKeptUntilTheCacheShowsIt(t *testing.T) {
	again := func(_ events.Source, before *lastEvent, _ bool) (events.Change, bool) { return before.again() }
	for _, tt := range []struct {
		name             string
		lost             bool
		doubted, waiting bool
		entry            queueEntry
		want             error
	}{
		{"a deletion that is not seen yet", false, true, false, queueEntry{gone: true}, errUndecided},
		{"a creation that is not seen yet", false, true, false, queueEntry{created: true}, errUndecided},
		{"a change, which the cache will show", false, true, false, queueEntry{}, nil},
		{"a deletion that is known", false, false, false, queueEntry{gone: true}, nil},
		{"a deletion during the first list", false, false, true, queueEntry{gone: true}, errUndecided},
		{"a creation during the first list", false, false, true, queueEntry{created: true}, nil},
		{"a deletion whose source is told again meanwhile", true, true, false, queueEntry{gone: true}, errUndecided},
		{"another source that is told again", true, true, false, queueEntry{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bus := &publications{}
			r, _ := reconcilerOf(t, bus, again)
			r.doubted, r.hasListed = func(events.Source) bool { return tt.doubted }, func(events.Kind) bool { return !tt.waiting }
			before := eventAt(3, "u", "5", "5")
			if tt.lost {
				before = lostAt(0, before)
			}
			r.ledger.set(testSource, before)
			if err := r.reconcile(t.Context(), testSource, &tt.entry); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if published := len(bus.published) == 1; published != tt.lost {
				t.Errorf("published %+v", bus.published)
			}
		})
	}
}

// TestADeletionWithoutAnEventIsNotKept is about a kind of which the first list never ends, as with a permission that is missing in one of several
// namespaces.
func TestADeletionWithoutAnEventIsNotKept(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before *lastEvent
	}{
		{"the source has no event", nil},
		{"its event cannot be read", unreadableEvent(3)},
		{"its deletion is known", lastOf(3, events.VerbDeleted)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bus := &publications{}
			r, _ := reconcilerOf(t, bus, func(_ events.Source, before *lastEvent, created bool) (events.Change, bool) {
				return compare(before, nil, created)
			})
			r.hasListed = func(events.Kind) bool { return false }
			if tt.before != nil {
				r.ledger.set(testSource, tt.before)
			}
			if err := r.reconcile(t.Context(), testSource, &queueEntry{gone: true}); err != nil || len(bus.published) > 0 {
				t.Errorf("published %+v, %v", bus.published, err)
			}
		})
	}
}

func TestReconcileComparesAgainWithWhatAnotherWatcherSaid(t *testing.T) {
	for _, tt := range []struct {
		name      string
		conflicts int
		tries     int
		want      error
	}{
		{"after one conflict", 1, 2, nil},
		{"after as many as are tried but one", maxConflicts - 1, maxConflicts, nil},
		{"and takes a break after as many", maxConflicts, maxConflicts, events.ErrConflict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bus := &publications{conflicts: tt.conflicts}
			r, _ := reconcilerOf(t, bus, always)
			if err := r.reconcile(t.Context(), testSource, &queueEntry{}); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if len(bus.published) != tt.tries || bus.expected[0] != 0 || bus.expected[1] != 9 {
				t.Errorf("published as the successors of %v, want %d tries, after the first of 9", bus.expected, tt.tries)
			}
		})
	}
}

func TestReconcileReturnsWhyNothingCouldBePublished(t *testing.T) {
	away := errors.New("no answer")
	r, _ := reconcilerOf(t, &publications{err: away}, always)
	err := r.reconcile(t.Context(), testSource, &queueEntry{})
	if !errors.Is(err, away) || err.Error() != "publishing changed of secret/db: no answer" {
		t.Errorf("error %v", err)
	}
	if r.ledger.get(testSource) != nil {
		t.Error("the ledger has what was not published")
	}
}

// errRefused is the error of a stream to which no event is valid.
var errRefused = fmt.Errorf("checking: %w", &events.RejectError{Reason: events.ReasonMalformed, Err: errors.New("the uid is not a Kubernetes UID")})

func TestAnObservationOfWhichNoEventCanBeMadeIsDropped(t *testing.T) {
	source := storePath.Source()
	for _, tt := range []struct {
		name  string
		since bool
	}{{"that is the last", false}, {"that is not the last any more", true}} {
		t.Run(tt.name, func(t *testing.T) {
			s, queued := storesOf()
			s.sight(written(7, "update", 1))
			*queued = nil
			bus := &publications{err: errRefused}
			r, _ := reconcilerOf(t, bus, nil)
			r.sightings, r.notice = s.sightings, s.noticed
			r.assessors = map[events.Kind]assessor{events.KindOpenBao: func(source events.Source, before *lastEvent, created bool) (events.Change, bool) {
				change, ok := s.assess(source, before, created)
				if tt.since {
					s.sight(written(8, "update", 2))
				}
				return change, ok
			}}
			err := r.reconcile(t.Context(), source, &queueEntry{})
			if _, refused := errors.AsType[*events.RejectError](err); !refused || len(bus.published) != 1 {
				t.Errorf("error %v after %d tries, want that it was refused once", err, len(bus.published))
			}
			if waiting := s.sightings.get(source); (waiting != nil) != tt.since || tt.since && waiting.Version != 8 {
				t.Errorf("%+v waits", waiting)
			}
			wantEqual(t, "queued again", []events.Source{source}, *queued)
		})
	}
}

func TestARefusedEventReturnsWhatItHasReserved(t *testing.T) {
	r, _ := reconcilerOf(t, &publications{err: errRefused}, always)
	r.throttle = newThrottle(1<<20, time.Now, slog.New(slog.DiscardHandler))
	entry := queueEntry{created: true}
	if err := r.reconcile(t.Context(), testSource, &entry); err == nil || entry.held != (reservation{}) {
		t.Errorf("error %v, holds %+v", err, entry.held)
	}
}

func TestAnObjectThatWasChangedBeforeItsFirstEventIsPublishedAsChanged(t *testing.T) {
	ring := keyringOf(1)
	first := objectOf(ring, "u", 1, content{"a": "one", "b": "one"})
	for _, tt := range []struct {
		name   string
		now    *object
		before *lastEvent
		want   string
	}{
		{"as it was created", first, nil, "created a b"},
		{"changed since", objectOf(ring, "u", 2, content{"a": "two", "b": "one"}), nil, "changed a"},
		{"labelled since", objectOf(ring, "u", 2, content{"a": "one", "b": "one"}), nil, "created a b"},
		{"made anew since", objectOf(ring, "v", 2, content{"a": "two", "b": "one"}), nil, "created a b"},
		{"published before", objectOf(ring, "u", 3, content{"a": "three", "b": "one"}), mustLast(t, appeared(first, true)), "changed a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bus := &publications{}
			r, _ := reconcilerOf(t, bus, func(_ events.Source, before *lastEvent, created bool) (events.Change, bool) {
				return compare(before, tt.now, created)
			})
			if tt.before != nil {
				r.ledger.set(testSource, tt.before)
			}
			must(t, r.reconcile(t.Context(), testSource, &queueEntry{created: true, first: first}))
			got := bus.published[0]
			verb := string(got.Verb)
			if got.Created {
				verb = "created"
			}
			if text := strings.Join(append([]string{verb}, got.Changed...), " "); text != tt.want {
				t.Errorf("published %s, want %s", text, tt.want)
			}
			if verb == "changed" && (got.CreatedAt != "1") {
				t.Errorf("created at %q, want that of the creation", got.CreatedAt)
			}
		})
	}
}
