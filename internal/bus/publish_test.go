package bus

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// answered publishes a change until that is answered, and returns the answer.
func answered(t *testing.T, b *Bus, c events.Change, expected uint64) (seq uint64, err error) {
	t.Helper()
	testkit.Eventually(t, "it is answered", func() bool {
		seq, err = b.PublishChange(t.Context(), c, expected)
		return !IsSilence(err)
	})
	return seq, err
}

func TestPublishChangeIsOnBothStreams(t *testing.T) {
	s := sharedServer(t)
	b, js := s.bus(), s.jetstream()
	seq := mustPublish(t, b, version("db", "1"), 0)

	stored, err := lastOn(t, b, "keyturn.v1.prod-eu.secret.shop.db")
	testkit.Must(t, err)
	if c, err := stored.Change(); err != nil || c.ResourceVersion != "1" || stored.Seq != seq {
		t.Errorf("CHANGES: got %+v at %d, %v; want version 1 at %d", c, stored.Seq, err, seq)
	}
	history := messages(t, js, events.StreamHistory)
	if len(history) != 1 || history[0].Subject != "keyturn.history.v1.prod-eu.secret.shop.db" {
		t.Fatalf("HISTORY holds %v", history)
	}
	if id := history[0].Header.Get("Nats-Msg-Id"); id != "prod-eu/uid-db/1" {
		t.Errorf("the message id is %s", id)
	}
	if expectation := history[0].Header.Get("Nats-Expected-Last-Subject-Sequence"); expectation != "" {
		t.Errorf("HISTORY was given the expectation %s", expectation)
	}
}

func TestPublishChangeConflicts(t *testing.T) {
	s := sharedServer(t)
	tests := []struct {
		name     string
		before   []events.Change
		publish  events.Change
		expected func(seqs []uint64) uint64
		want     error
	}{
		{
			name: "a change that expects no event where there is one conflicts", before: []events.Change{version("c", "1")}, publish: version("c", "2"),
			expected: func([]uint64) uint64 { return 0 }, want: ErrConflict,
		},
		{
			name: "a change that expects a superseded event conflicts", before: []events.Change{version("d", "1"), version("d", "2")}, publish: version("d", "3"),
			expected: func(seqs []uint64) uint64 { return seqs[0] }, want: ErrConflict,
		},
		{
			name: "the same change again is found to be stored, as after a lost acknowledgement", before: []events.Change{version("f", "1")}, publish: version("f", "1"),
			expected: func([]uint64) uint64 { return 0 },
		},
		{
			name: "the change of another watcher at the same version conflicts", before: []events.Change{version("h", "1")}, publish: func() events.Change {
				c := version("h", "1")
				c.Time = c.Time.Add(time.Millisecond)
				return c
			}(),
			expected: func([]uint64) uint64 { return 0 }, want: ErrConflict,
		},
	}
	b := s.bus()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var seqs []uint64
			var last uint64
			for _, c := range tt.before {
				last = mustPublish(t, b, c, last)
				seqs = append(seqs, last)
			}
			seq, err := answered(t, b, tt.publish, tt.expected(seqs))
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err != nil {
				return
			}
			stored, err := lastOn(t, b, events.Subject(testCluster, tt.publish.Source))
			if err != nil || stored.Seq != seq || stored.ID() != tt.publish.ID() {
				t.Errorf("got sequence %d, but stored is %+v, %v", seq, stored, err)
			}
		})
	}
}

// TestPublishChangeAgainAfterWhatSupersededIt reports an object as deleted that still exists, unchanged. Its event then has an id
// that is within the dedupe window.
func TestPublishChangeAgainAfterWhatSupersededIt(t *testing.T) {
	s := sharedServer(t)
	b, js := s.bus(), s.jetstream()
	there, gone := version("db", "7"), version("db", "7")
	gone.Verb = events.VerbDeleted

	first := mustPublish(t, b, there, 0)
	second := mustPublish(t, b, gone, first)
	third := mustPublish(t, b, there, second)
	if again := mustPublish(t, b, there, second); again != third {
		t.Errorf("the repetition is at %d, want %d", again, third)
	}
	stored, err := lastOn(t, b, events.Subject(testCluster, there.Source))
	if err != nil || stored.Seq != third || stored.ID() != there.ID() {
		t.Errorf("stored is %+v, %v; want sequence %d", stored, err, third)
	}
	if history := messages(t, js, events.StreamHistory); len(history) != 3 {
		t.Errorf("HISTORY holds %d events, want 3", len(history))
	}
}

func TestTombstonesExpireOnChangesOnly(t *testing.T) {
	s := sharedServer(t)
	b, js := s.bus(), s.jetstream()
	c := version("db", "1")
	c.Verb = events.VerbDeleted
	mustPublish(t, b, c, 0)
	mustPublish(t, b, version("web", "1"), 0)

	ttls := make(map[string]string)
	for _, stream := range []string{events.StreamChanges, events.StreamHistory} {
		for _, raw := range messages(t, js, stream) {
			ttls[raw.Subject] = raw.Header.Get("Nats-TTL")
		}
	}
	want := map[string]string{
		"keyturn.v1.prod-eu.secret.shop.db": "24h0m0s", "keyturn.v1.prod-eu.secret.shop.web": "",
		"keyturn.history.v1.prod-eu.secret.shop.db": "", "keyturn.history.v1.prod-eu.secret.shop.web": "",
	}
	for subject, ttl := range want {
		if got, there := ttls[subject]; !there || got != ttl {
			t.Errorf("%s: the TTL is %q (there: %t), want %q", subject, got, there, ttl)
		}
	}
}

func TestPublishChangeCarriesTheHop(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	published(t, func() error {
		_, err := b.PublishChange(trace.ContextWithSpanContext(t.Context(), span), version("db", "1"), 0)
		return err
	})
	for _, stream := range []string{events.StreamChanges, events.StreamHistory} {
		header := messages(t, s.jetstream(), stream)[0].Header
		if got := header["traceparent"]; len(got) != 1 || got[0] != "00-01000000000000000000000000000000-0200000000000000-01" {
			t.Errorf("%s: traceparent is %v", stream, got)
		}
		if got := header["ce-traceparent"]; len(got) != 1 || got[0] != change().Trace.Parent {
			t.Errorf("%s: ce-traceparent is %v", stream, got)
		}
	}
}

func TestPublishRefuses(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	c := version("db", "1")
	c.Cluster = "other"
	_, err := b.PublishChange(t.Context(), c, 0)
	wantReason(t, err, events.ReasonForeignCluster)
	o := outcome()
	o.Cluster = "other"
	wantReason(t, errors.Join(b.PublishOutcomes(t.Context(), o)...), events.ReasonForeignCluster)
	p := projection()
	p.Cluster = "other"
	wantReason(t, b.PublishProjection(t.Context(), p), events.ReasonForeignCluster)
	c = version("db", "1")
	c.Fingerprint = "hunter2"
	_, err = b.PublishChange(t.Context(), c, 0)
	wantReason(t, err, events.ReasonMalformed)
	if n := len(messages(t, s.jetstream(), events.StreamHistory)); n != 0 {
		t.Errorf("HISTORY holds %d messages", n)
	}
}

// A server may be restarted with another configuration while a program runs.
func TestPublishSaysHowLargeAnEventIsThatTheServerDoesNotTake(t *testing.T) {
	s := newServer(t, testkit.StoreDir(t))
	s.start(freeAddress(t)) // which stays free while the server is away
	s.declare()
	b := s.bus()
	s.restart(func() { s.configure("max_payload: 8192") })
	testkit.Eventually(t, "it is connected again", func() bool { return b.js.Conn().MaxPayload() == 8192 })
	_, err := answered(t, b, withKeys("big", "1"), 0)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "bytes, and the max_payload of the nats server is 8192") {
		t.Errorf("got %v, want both sizes", err)
	}
	mustPublish(t, b, version("small", "1"), 0)

	js := s.jetstream()
	config := Declared(1)[1]
	config.MaxMsgSize = 4096
	testkit.Must(t, errIn(js.UpdateStream(t.Context(), config)))
	middle := version("middle", "1")
	for i := range 50 {
		middle.Keys[fmt.Sprintf("key-number-%d", i)] = events.Key{Fingerprint: sum("5")}
	}
	log := &testkit.Log{}
	b.logger = log.Logger()
	// CHANGES takes it, and neither the next one of its source nor another waits until HISTORY does.
	seq := mustPublish(t, b, middle, 0)
	mustPublish(t, b, version("middle", "2"), seq)
	mustPublish(t, b, version("other", "1"), 0)
	if text := log.String(); !strings.Contains(text, "the history does not take a change") || !strings.Contains(text, "max_msg_size of HISTORY") {
		t.Errorf("the log does not say that the stream does not take it:\n%s", text)
	}
}

// purge drops every message of StreamChanges. The server remembers their ids for as long as it detects duplicates.
func purge(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	stream, err := js.Stream(t.Context(), events.StreamChanges)
	testkit.Must(t, err)
	testkit.Must(t, stream.Purge(t.Context()))
}

func TestPublishChangeAgainAfterTheStreamHasLostIt(t *testing.T) {
	s := sharedServer(t)
	b, js := s.bus(), s.jetstream()
	c := version("db", "1")
	last := mustPublish(t, b, c, 0)
	for range 3 {
		purge(t, js)
		seq := mustPublish(t, b, c, 0)
		stored, err := lastOn(t, b, events.Subject(testCluster, c.Source))
		if err != nil || stored.Seq != seq || seq <= last || stored.ID() != c.ID() {
			t.Fatalf("got sequence %d after %d, but stored is %+v, %v", seq, last, stored, err)
		}
		if again := mustPublish(t, b, c, 0); again != seq {
			t.Errorf("the repetition is at %d, want %d", again, seq)
		}
		last = seq
	}
}

func TestAProjectionIsOnHistoryAndNotTwice(t *testing.T) {
	b := sharedServer(t).bus()
	for range 2 {
		published(t, func() error { return b.PublishProjection(t.Context(), projection()) })
	}
	var found []string
	if err := errorOf(t, func() error {
		found = nil
		return b.History(t.Context(), HistoryQuery{Kind: events.KindProjection}, func(stored events.Stored) error {
			p, err := stored.Projection()
			found = append(found, p.Reason)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	testkit.WantEqual(t, "on HISTORY", []string{"applied"}, found)
	if _, err := lastOn(t, b, projection().Subject()); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("on CHANGES: got %v, want nothing", err)
	}
}
