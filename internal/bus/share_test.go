package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// historyOf returns how many events of a namespace HISTORY has.
func historyOf(t *testing.T, b *Bus, namespace string) int {
	t.Helper()
	return len(readHistory(t, b, HistoryQuery{Namespace: namespace}))
}

// smallHistory is a bus whose HISTORY has room for so many bytes.
func smallHistory(t *testing.T, bytes int64) *Bus {
	t.Helper()
	s := sharedServer(t)
	config := Declared(1)[1]
	config.MaxBytes = bytes
	testkit.Must(t, errIn(s.jetstream().UpdateStream(t.Context(), config)))
	return s.bus()
}

// A tenant that creates and deletes ever new names, whose workloads are rolled for each, fills HISTORY, which drops the oldest events.
func TestANamespaceDoesNotEvictTheHistoryOfAnother(t *testing.T) {
	b := smallHistory(t, 1<<19)
	const kept = 40
	var seq uint64
	for i := range kept {
		c := version("db", fmt.Sprint(i+1))
		c.Source.Namespace = "quiet"
		seq = mustPublish(t, b, c, seq)
	}
	const churned = 500 // more than three times what HISTORY has room for
	for i := range churned {
		c := version(fmt.Sprint("churned-", i), fmt.Sprint(1000+i))
		c.Source.Namespace = "noisy"
		seq := mustPublish(t, b, c, 0)
		c.Verb, c.Changed, c.Previous = events.VerbDeleted, nil, ""
		mustPublish(t, b, c, seq)
		o := outcome()
		o.Workload.Namespace, o.ResourceVersion = "noisy", fmt.Sprint(5000+i)
		mustTell(t, b, o)
	}
	if n := historyOf(t, b, "quiet"); n != kept {
		t.Errorf("HISTORY has %d of %d events of the namespace that behaves", n, kept)
	}
	if n := historyOf(t, b, "noisy"); n == 0 {
		t.Error("HISTORY has nothing of the other one, want its share")
	}
	// Whatever is left out of HISTORY is on CHANGES.
	for _, subject := range []string{
		events.Subject(testCluster, events.Source{Kind: events.KindSecret, Namespace: "noisy", Name: fmt.Sprint("churned-", churned-1)}),
		events.OutcomeSubject(testCluster, events.Workload{Kind: outcome().Workload.Kind, Namespace: "noisy", Name: outcome().Workload.Name}),
	} {
		if _, err := lastOn(t, b, subject); err != nil {
			t.Error(err)
		}
	}
}

// Whoever may write a secret in a store can write it each second.
func TestEachMountOfAStoreHasAShareOfItsOwn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		source events.Source
		want   string
	}{
		{"a Secret has that of its namespace", version("db", "1").Source, "shop"},
		{"a path that of its mount", events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "kv", Path: "shop/db"}.Source(), "bao/root/kv"},
		{"a mount of several segments is one", events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "kv/prod", Path: "db"}.Source(), "bao/root/kv%2Fprod"},
		{"so is a namespace of the store", events.StorePath{Store: "bao", Namespace: "a/b", Mount: "kv", Path: "db"}.Source(), "bao/a%2Fb/kv"},
	} {
		if got := tt.source.Sharer(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Each workload leaves its last outcome on CHANGES, and nothing else there goes with the workload.
func TestCHANGESKeepsAnOutcomeBeyondTheShareForADayOrAnHour(t *testing.T) {
	b := smallHistory(t, 1<<20)
	b.share.half = 0
	const published = 60
	for i := range published {
		o := outcome()
		o.Workload.Name, o.Workload.UID = fmt.Sprint("web-", i), fmt.Sprint("uid-", i)
		mustTell(t, b, o)
	}
	kept := make(map[string]int)
	for _, raw := range messages(t, b.js, events.StreamChanges) {
		kept[raw.Header.Get(jetstream.MsgTTLHeader)]++
	}
	usual, day, hour := kept[retention.String()], kept[events.CrowdedOutcomeTTL.String()], kept[events.FullOutcomeTTL.String()]
	if usual == 0 || day == 0 || hour == 0 || usual+day+hour != published {
		t.Errorf("of %d outcomes so many are kept for a time: %v; want some for 30 days, some for a day and the others for an hour", published, kept)
	}
}

func TestAnOutcomeThatHISTORYHasTakesNoMoreRoom(t *testing.T) {
	b := smallHistory(t, 1<<20)
	mustTell(t, b, outcome())
	stored := b.share.stored
	mustTell(t, b, outcome())
	if stored == 0 || b.share.stored != stored {
		t.Errorf("%d bytes count after the first, %d after the second; want the same, and not none", stored, b.share.stored)
	}
}

// sized is a stream of which only the size is known.
type sized struct {
	jetstream.Stream
	config jetstream.StreamConfig
	bytes  uint64
	err    error
}

func (s *sized) CachedInfo() *jetstream.StreamInfo {
	return &jetstream.StreamInfo{Config: s.config, State: jetstream.StreamState{Bytes: s.bytes}}
}

func (s *sized) Info(context.Context, ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	if s.err != nil {
		return nil, s.err
	}
	return &jetstream.StreamInfo{State: jetstream.StreamState{Bytes: s.bytes}}, nil
}

// unanswered is a stream whose server answers no request.
type unanswered struct {
	sized
	asked atomic.Int64
}

func (s *unanswered) Info(ctx context.Context, _ ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	s.asked.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestNoPublicationWaitsForTheSizeOfTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := &unanswered{sized: sized{config: jetstream.StreamConfig{MaxBytes: 16 << 20, MaxAge: retention}, bytes: 9 << 20}}
		b := &Bus{share: newHistoryShare(stream, time.Now, slog.New(slog.DiscardHandler))}
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { b.WatchHistory(ctx) })
		for range 10 {
			<-time.After(shareLook + infoTimeout/2)
			began := time.Now()
			b.share.take(ctx, "noisy", 64<<10)
			if took := time.Since(began); took != 0 {
				t.Errorf("a publication waited for %s", took)
			}
		}
		if !b.share.isCrowded(0) {
			t.Error("without an answer, the size at the start does not count")
		}
		if asked := stream.asked.Load(); asked != 9 && asked != 10 {
			t.Errorf("in ten minutes the size was asked %d times", asked)
		}
		cancel()
		watching.Wait()
	})
}

func TestSharesCountFromHalfOfTheHistory(t *testing.T) {
	var log strings.Builder
	now, stream := testTime, &sized{config: jetstream.StreamConfig{MaxBytes: 16 << 20, MaxAge: retention}}
	share := newHistoryShare(stream, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	take := func(namespace string) (time.Duration, bool) {
		taken, ok := share.take(t.Context(), namespace, 64<<10)
		return taken.ttl, ok
	}

	for range 100 { // 6.4 MiB, by far more than a share
		if ttl, ok := take("noisy"); ttl != 0 || !ok {
			t.Fatalf("less than half full: kept for %s, %t", ttl, ok)
		}
	}
	stream.bytes, now = 9<<20, now.Add(time.Hour)
	share.look(t.Context())
	if ttl, ok := take("noisy"); ttl != shortly || !ok {
		t.Errorf("more than half full: kept for %s, %t, want an hour", ttl, ok)
	}
	if ttl, ok := take("quiet"); ttl != 0 || !ok {
		t.Errorf("another namespace: kept for %s, %t", ttl, ok)
	}
	for range 100 {
		if ttl, ok := take(""); ttl != 0 || !ok {
			t.Fatalf("what is of no namespace: kept for %s, %t", ttl, ok)
		}
	}
	take("noisy")
	if _, ok := take("noisy"); ok {
		t.Error("beyond the share of an hour: stored, want not")
	}
	if got := strings.Count(log.String(), "of=noisy"); got != 1 {
		t.Errorf("logged %d times, want once:\n%s", got, log.String())
	}
	// While the stream cannot be read, its last size counts.
	stream.err, now = errors.New("no answer"), now.Add(shortly)
	share.look(t.Context())
	if ttl, _ := take("noisy"); ttl != shortly {
		t.Errorf("without an answer: kept for %s, want an hour", ttl)
	}
	// Within a month a namespace earns its share again.
	stream.err, now = nil, now.Add(retention)
	share.look(t.Context())
	if ttl, ok := take("noisy"); ttl != 0 || !ok {
		t.Errorf("a month later: kept for %s, %t", ttl, ok)
	}
}

func TestAHistoryWithoutLimitHasNoShares(t *testing.T) {
	share := newHistoryShare(&sized{config: jetstream.StreamConfig{MaxBytes: -1}}, time.Now, slog.Default())
	for range 1000 {
		if taken, ok := share.take(t.Context(), "noisy", events.MaxEventSize); taken.ttl != 0 || !ok {
			t.Fatalf("kept for %s, %t", taken.ttl, ok)
		}
	}
}
