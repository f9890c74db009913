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

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// extents is a stream of which only the extent and the subjects are known. It records when the extent is read.
type extents struct {
	extent bus.Extent
	err    error
	reads  []time.Time
	// purged is the source whose subject is gone.
	purged events.Source
	// onRead is called when the extent is read.
	onRead func()
}

func (e *extents) Extent(context.Context) (bus.Extent, error) {
	e.reads = append(e.reads, time.Now())
	if e.onRead != nil {
		e.onRead()
	}
	return e.extent, e.err
}

func (e *extents) Subjects(context.Context, string) (map[string]uint64, error) {
	subjects := make(map[string]uint64)
	for _, source := range []events.Source{testSource, otherSource} {
		if source != e.purged {
			subjects[events.Subject(testCluster, source)] = 1
		}
	}
	return subjects, nil
}

// watchedNamespace is the namespace whose sources are watched.
type watchedNamespace string

func (n watchedNamespace) watches(source events.Source) bool { return source.Namespace == string(n) }

// recoveryOf is a recovery of a stream whose last events are stored.
func recoveryOf(t *testing.T, extent bus.Extent, stored ...events.Stored) *recovery {
	t.Helper()
	state := &stateOf{stored: stored}
	if len(stored) == 0 {
		state.last = events.ErrNotFound
	}
	reader, _ := readerOf(state)
	pending := newPendingSources(time.Now)
	t.Cleanup(pending.shutDown)
	return &recovery{
		bus: &extents{extent: extent}, reader: reader, interval: 30 * time.Second, informers: watchedNamespace(testSource.Namespace),
		pending: pending, lost: make(chan struct{}, 1), metrics: unmeasured(t, reader.ledger), log: slog.New(slog.DiscardHandler),
	}
}

func TestTheStreamIsSuspectedOfALoss(t *testing.T) {
	unwatched := events.Source{Kind: events.KindSecret, Namespace: "bank", Name: "db"}
	for _, tt := range []struct {
		name   string
		extent bus.Extent
		stored []events.Stored
		purged events.Source
		want   bool
	}{
		{"not if it has what the ledger has", bus.Extent{Events: 2}, []events.Stored{unreadable(otherSource, 7)}, events.Source{}, false},
		{"if its newest event is another", bus.Extent{Events: 9}, []events.Stored{unreadable(otherSource, 5)}, events.Source{}, true},
		{"if it has none where the newest was", bus.Extent{Events: 9}, nil, events.Source{}, true},
		{"if it lacks one of many", bus.Extent{Events: 9}, []events.Stored{unreadable(otherSource, 7)}, testSource, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := recoveryOf(t, tt.extent, tt.stored...)
			r.bus = &extents{extent: tt.extent, purged: tt.purged}
			r.reader.ledger.set(testSource, lastOf(3, events.VerbObserved))
			r.reader.ledger.set(otherSource, lastOf(7, events.VerbObserved))
			r.reader.ledger.set(unwatched, lastOf(9, events.VerbObserved))
			r.reader.ledger.set(events.Source{Namespace: "shop", Name: "lost"}, lostAt(0, lastOf(0, events.VerbObserved)))
			got, err := r.suspect(t.Context(), tt.extent)
			if err != nil || got != tt.want {
				t.Errorf("got %t, %v; want %t", got, err, tt.want)
			}
		})
	}
}

func TestTheStreamIsCheckedAtIntervals(t *testing.T) {
	for _, tt := range []struct {
		name string
		// prepare sets the stream up. seconds has the times of the reads in the first minutes.
		prepare func(*recovery, *extents)
		seconds []int
	}{
		{"that are equal while nothing is lost", func(*recovery, *extents) {}, []int{30, 30, 30, 30}},
		{"that are short at first where it does not answer", func(_ *recovery, b *extents) {
			b.err = errors.New("no answer")
		}, []int{1, 2, 4, 8, 16, 30, 30}},
		{"that grow while it loses events again and again", func(r *recovery, b *extents) {
			b.onRead = func() { r.reader.ledger.set(testSource, lastOf(3, events.VerbObserved)) }
		}, []int{60, 120, 240, 480, 960, 960, 960}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := recoveryOf(t, bus.Extent{Created: epoch})
				b := &extents{extent: bus.Extent{Created: epoch}}
				r.bus = b
				tt.prepare(r, b)
				ctx, stop := context.WithCancel(t.Context())
				reconnected := make(chan struct{})
				var running sync.WaitGroup
				running.Go(func() { r.run(ctx, reconnected) })
				var total int
				for _, s := range tt.seconds {
					total += s
				}
				<-time.After(time.Duration(total)*time.Second + time.Duration(total)*time.Second/9)
				synctest.Wait()
				for i, s := range tt.seconds {
					least := time.Duration(s) * time.Second
					if waited := b.reads[i+1].Sub(b.reads[i]); waited < least || waited > least+least/10 {
						t.Errorf("check %d came after %s, want %s and at most a tenth more", i+1, waited, least)
					}
				}
				before := len(b.reads)
				reconnected <- struct{}{}
				synctest.Wait()
				if len(b.reads) != before+1 {
					t.Errorf("after a reconnection there are %d checks, want %d", len(b.reads), before+1)
				}
				stop()
				running.Wait()
			})
		})
	}
}

// purge drops every event on StreamChanges, as an operator may do.
func (b *bench) purge() {
	b.Helper()
	natstest.Publish(b.T, func() error {
		stream, err := b.js.Stream(b.Context(), events.StreamChanges)
		if err != nil {
			return err
		}
		return stream.Purge(b.Context())
	})
}

// await is like eventually, for what reads a whole stream.
func (b *bench) await(what string, holds func(context.Context) bool) {
	b.Helper()
	testkit.Await(b.T, what, holds, b.log.String)
}

// state returns the last event of each source on the stream, or less if the stream cannot be read.
func (b *bench) state(ctx context.Context) map[string]string {
	state := make(map[string]string)
	filters := []string{events.KindFilter(testCluster, events.KindSecret), events.KindFilter(testCluster, events.KindExternalSecret)}
	err := b.bus.State(ctx, filters, func(stored events.Stored) error {
		change, err := stored.Change()
		if err != nil {
			return err
		}
		state[change.Source.String()] = told(change)
		return nil
	})
	if err != nil {
		b.Log(err)
	}
	return state
}

// wantState waits until the last event of each source on the stream is the wanted one.
func (b *bench) wantState(want map[string]string) {
	b.Helper()
	var got map[string]string
	testkit.Await(b.T, "the stream has the wanted last events", func(ctx context.Context) bool {
		got = b.state(ctx)
		return cmp.Equal(want, got)
	}, b.log.String, func() string { return "last events (-want +got):\n" + cmp.Diff(want, got) })
}

// seqOf returns the sequence of the last event of a source on StreamChanges, which must have one.
func (b *bench) seqOf(source events.Source) uint64 {
	b.Helper()
	var last events.Stored
	b.eventually("the last event of "+source.String()+" can be read", func() (ok bool) {
		last, ok = b.lastOn(events.Subject(testCluster, source))
		return ok
	})
	return last.Seq
}

func TestWatcherPublishesAgainWhatTheStreamHasLost(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), secretOf("shop", "other", "u2", "1", "one"))
	options := b.options()
	options.CheckStream = 20 * time.Millisecond
	defer b.ready(options)()
	b.update(secretOf("shop", "db", "u1", "2", "two"))
	b.create(secretOf("shop", "goes", "u3", "3", "one"))
	b.await("both are published", func(ctx context.Context) bool {
		state := b.state(ctx)
		return len(state) == 3 && strings.HasPrefix(state["secret/db"], "changed")
	})
	b.delete("shop", "goes")
	want := map[string]string{
		"secret/db": "changed u1/2@2 {a@2 b} [a]", "secret/other": "observed u2/1 {a b} []", "secret/goes": "deleted u3/3@3 {a b} []",
	}
	b.await("the deletion is published", func(ctx context.Context) bool { return b.state(ctx)["secret/goes"] == want["secret/goes"] })
	for range 2 {
		b.purge()
		b.wantState(want)
	}
	b.eventually("that is logged", func() bool {
		return strings.Contains(b.log.String(), `"level":"WARN","msg":"stream CHANGES has lost events; publishing them again"`)
	})
}
