package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
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
		return 0, fmt.Errorf("publishing: %w", bus.ErrConflict)
	}
	return uint64(10 + len(p.published)), p.err
}

// assessFunc assesses a source.
type assessFunc func(source events.Source, before *kinds.LastEvent, entry queueEntry) assessment

func (f assessFunc) assess(source events.Source, before *kinds.LastEvent, entry queueEntry) assessment {
	return f(source, before, entry)
}

// listedKinds is whether every kind has been listed.
type listedKinds bool

func (l listedKinds) hasListed(events.Kind) bool { return bool(l) }

// complete is the readiness of a watcher that has seen every source.
func complete() *readiness {
	ready := &readiness{}
	ready.complete.Store(true)
	return ready
}

// queuedIn lists the sources that are queued, sorted.
func queuedIn(p *pendingSources) []events.Source {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Keys(p.entries), func(a, b events.Source) int {
		return strings.Compare(a.Namespace+"/"+a.String(), b.Namespace+"/"+b.String())
	})
}

func reconcilerOf(t *testing.T, stream *publications, assess assessor) *reconciler {
	t.Helper()
	reader, _ := readerOf(&stateOf{stored: []events.Stored{unreadable(testSource, 9)}})
	pending := newPendingSources(time.Now)
	t.Cleanup(pending.shutDown)
	return &reconciler{
		cluster: testCluster, now: func() time.Time { return epoch }, assessors: map[events.Kind]assessor{testSource.Kind: assess},
		ledger: reader.ledger, reader: reader, throttle: newThrottle(0, time.Now, slog.New(slog.DiscardHandler)), readiness: complete(),
		informers: listedKinds(true), sightings: newSightings(), pending: pending,
		publisher: &publisher{
			bus: stream, inFlight: bus.NewInFlight(1, time.Now), ledger: reader.ledger, metrics: unmeasured(t, reader.ledger),
			tracer: tracenoop.NewTracerProvider().Tracer(""), now: time.Now, log: slog.New(slog.DiscardHandler),
		},
	}
}

// always assesses a source as changed, and never as it was.
var (
	always assessFunc = func(_ events.Source, _ *kinds.LastEvent, entry queueEntry) assessment {
		return assessment{publish: true, change: events.Change{
			Verb: events.VerbChanged, UID: "u", ResourceVersion: "1", ChangedAt: "1", Fingerprint: fingerprint, Created: entry.created,
		}}
	}
	never assessFunc = func(_ events.Source, before *kinds.LastEvent, _ queueEntry) assessment { return publishAgain(before) }
)

func TestWhatWasNoticedIsKeptUntilTheCacheShowsIt(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		lost, doubted, waiting bool
		entry                  queueEntry
		want                   error
	}{
		{"a deletion that is not seen yet", false, true, false, queueEntry{gone: true}, errUndecided},
		{"a creation that is not seen yet", false, true, false, queueEntry{created: true}, errUndecided},
		{"a change, which the cache will show", false, true, false, queueEntry{}, nil},
		{"a deletion during the first list", false, false, true, queueEntry{gone: true}, errUndecided},
		{"a creation during the first list", false, false, true, queueEntry{created: true}, nil},
		{"a deletion whose source is told again meanwhile", true, true, false, queueEntry{gone: true}, errUndecided},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream := &publications{}
			r := reconcilerOf(t, stream, assessFunc(func(_ events.Source, before *kinds.LastEvent, _ queueEntry) assessment {
				found := publishAgain(before)
				found.doubted = tt.doubted
				return found
			}))
			r.informers = listedKinds(!tt.waiting)
			before := eventAt(3, "u", "5", "5")
			if tt.lost {
				before = lostAt(0, before)
			}
			r.ledger.set(testSource, before)
			if err := r.reconcile(t.Context(), testSource, &tt.entry); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if published := len(stream.published) == 1; published != tt.lost {
				t.Errorf("published %+v", stream.published)
			}
		})
	}
}

// TestADeletionWithoutAnEventIsNotKept is about a kind of which the first list never ends, as with a permission that is missing in one of several
// namespaces.
func TestADeletionWithoutAnEventIsNotKept(t *testing.T) {
	for _, before := range []*kinds.LastEvent{nil, kinds.UnreadableEvent(3), lastOf(3, events.VerbDeleted)} {
		stream := &publications{}
		r := reconcilerOf(t, stream, never)
		r.informers = listedKinds(false)
		r.ledger.set(testSource, before)
		if err := r.reconcile(t.Context(), testSource, &queueEntry{gone: true}); err != nil || len(stream.published) > 0 {
			t.Errorf("after %+v: published %+v, %v", before, stream.published, err)
		}
	}
}

func TestReconcileComparesAgainWithWhatAnotherWatcherSaid(t *testing.T) {
	for conflicts, want := range map[int]error{maxConflicts - 1: nil, maxConflicts: bus.ErrConflict} {
		stream := &publications{conflicts: conflicts}
		r := reconcilerOf(t, stream, always)
		if err := r.reconcile(t.Context(), testSource, &queueEntry{}); !errors.Is(err, want) {
			t.Errorf("after %d conflicts: error %v, want %v", conflicts, err, want)
		}
		if len(stream.published) != maxConflicts || stream.expected[0] != 0 || stream.expected[1] != 9 {
			t.Errorf("published as the successors of %v, want %d tries, after the first of 9", stream.expected, maxConflicts)
		}
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
			stream := &publications{err: errRefused}
			r := reconcilerOf(t, stream, nil)
			s := storesOf(t)
			s.sight(written(7, "update", 1))
			mustTake(t, s.pending, source)
			s.pending.done(source)
			r.sightings, r.pending = s.sightings, s.pending
			r.assessors[events.KindOpenBao] = assessFunc(func(source events.Source, before *kinds.LastEvent, entry queueEntry) assessment {
				found := s.assess(source, before, entry)
				if tt.since {
					s.sight(written(8, "update", 2))
				}
				return found
			})
			err := r.reconcile(t.Context(), source, &queueEntry{})
			if _, refused := errors.AsType[*events.RejectError](err); !refused || len(stream.published) != 1 {
				t.Errorf("error %v after %d tries, want that it was refused once", err, len(stream.published))
			}
			if waiting := s.sightings.get(source); (waiting != nil) != tt.since || tt.since && waiting.Version != 8 {
				t.Errorf("%+v waits", waiting)
			}
			testkit.WantEqual(t, "queued again", []events.Source{source}, queuedIn(s.pending))
		})
	}
}

// The content of the pods of a class is settled when the class is assessed after its event.
func TestAClassIsAssessedAgainAfterItsEvent(t *testing.T) {
	class := events.Source{Kind: events.KindSecretProviderClass, Namespace: "shop", Name: "db"}
	r := reconcilerOf(t, &publications{}, nil)
	r.assessors[class.Kind] = always
	testkit.Must(t, r.reconcile(t.Context(), class, &queueEntry{}))
	testkit.WantEqual(t, "queued", []events.Source{class}, queuedIn(r.pending))
}

func TestAnObjectThatIsNotSelectedIsGoneOnlyIfItWasSeenToGo(t *testing.T) {
	for _, tt := range []struct {
		name, selector string
		before         *kinds.LastEvent
		entry          queueEntry
		want           events.Verb
	}{
		{"without a selector it is gone", "", eventAt(3, "u", "5", "5"), queueEntry{}, events.VerbDeleted},
		{"with one it may lack the labels", "team=a", eventAt(3, "u", "5", "5"), queueEntry{}, ""},
		{"with one it is gone if it was seen to go", "team=a", eventAt(3, "u", "5", "5"), queueEntry{gone: true}, events.VerbDeleted},
		{"the event that the stream has lost is published again", "team=a", lostAt(0, eventAt(3, "u", "5", "5")), queueEntry{}, events.VerbChanged},
		{"so is a deletion", "team=a", lostAt(0, deletedAt(3, "u", "5")), queueEntry{}, events.VerbDeleted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := assessorOf(t, newLedger(), everything())
			a.absence.scope.Selector = tt.selector
			if found := a.assess(testSource, tt.before, tt.entry); found.publish != (tt.want != "") || found.change.Verb != tt.want {
				t.Errorf("assessed as %+v, want %q", found, tt.want)
			}
		})
	}
}
