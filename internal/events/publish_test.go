package events

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestPublishChangeIsOnBothStreams(t *testing.T) {
	s := startServer(t)
	b, js := s.bus(), s.jetstream()
	seq := mustPublish(t, b, version("db", "1"), 0)

	stored, err := b.Last(t.Context(), "keyturn.v1.prod-eu.secret.shop.db")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := stored.Change(); err != nil || c.ResourceVersion != "1" || stored.Seq != seq {
		t.Errorf("CHANGES: got %+v at %d, %v; want version 1 at %d", c, stored.Seq, err, seq)
	}
	history := messages(t, js, StreamHistory)
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
	s := startServer(t)
	tests := []struct {
		name     string
		before   []Change
		publish  Change
		expected func(seqs []uint64) uint64
		want     error
	}{
		{
			name: "a first change of an unknown source is stored", publish: version("a", "1"),
			expected: func([]uint64) uint64 { return 0 },
		},
		{
			name: "a change that expects the last event supersedes it", before: []Change{version("b", "1")}, publish: version("b", "2"),
			expected: func(seqs []uint64) uint64 { return seqs[0] },
		},
		{
			name: "a change that expects no event where there is one conflicts", before: []Change{version("c", "1")}, publish: version("c", "2"),
			expected: func([]uint64) uint64 { return 0 }, want: ErrConflict,
		},
		{
			name: "a change that expects a superseded event conflicts", before: []Change{version("d", "1"), version("d", "2")}, publish: version("d", "3"),
			expected: func(seqs []uint64) uint64 { return seqs[0] }, want: ErrConflict,
		},
		{
			name: "a change that expects an event which is not there conflicts", publish: version("e", "1"),
			expected: func([]uint64) uint64 { return 99 }, want: ErrConflict,
		},
		{
			name: "the same change again is found to be stored, as after a lost acknowledgement", before: []Change{version("f", "1")}, publish: version("f", "1"),
			expected: func([]uint64) uint64 { return 0 },
		},
		{
			name: "the same change again conflicts when it is superseded", before: []Change{version("g", "1"), version("g", "2")}, publish: version("g", "1"),
			expected: func([]uint64) uint64 { return 0 }, want: ErrConflict,
		},
		{
			name: "the same object at the same version with other data conflicts", before: []Change{version("i", "1")}, publish: func() Change {
				c := version("i", "1")
				c.Changed = nil
				return c
			}(),
			expected: func([]uint64) uint64 { return 0 }, want: ErrConflict,
		},
		{
			name: "the change of another watcher at the same version conflicts", before: []Change{version("h", "1")}, publish: func() Change {
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
			seq, err := b.PublishChange(t.Context(), tt.publish, tt.expected(seqs))
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err != nil {
				return
			}
			stored, err := b.Last(t.Context(), Subject(testCluster, tt.publish.Source))
			if err != nil || stored.Seq != seq || stored.Event.ID() != tt.publish.ID() {
				t.Errorf("got sequence %d, but stored is %+v, %v", seq, stored, err)
			}
		})
	}
}

// TestPublishChangeAgainAfterWhatSupersededIt reports an object as deleted that still exists, unchanged. Its event then has an id
// that is within the dedupe window.
func TestPublishChangeAgainAfterWhatSupersededIt(t *testing.T) {
	s := startServer(t)
	b, js := s.bus(), s.jetstream()
	there, gone := version("db", "7"), version("db", "7")
	gone.Verb = VerbDeleted

	first := mustPublish(t, b, there, 0)
	second := mustPublish(t, b, gone, first)
	third := mustPublish(t, b, there, second)
	if again := mustPublish(t, b, there, second); again != third {
		t.Errorf("the repetition is at %d, want %d", again, third)
	}
	stored, err := b.Last(t.Context(), Subject(testCluster, there.Source))
	if err != nil || stored.Seq != third || stored.Event.ID() != there.ID() {
		t.Errorf("stored is %+v, %v; want sequence %d", stored, err, third)
	}
	if history := messages(t, js, StreamHistory); len(history) != 3 {
		t.Errorf("HISTORY holds %d events, want 3", len(history))
	}
}

// TestPublishChangeAcrossADuplicate has a repetition answered as clustered servers do: they check the id before the expected
// sequence.
func TestPublishChangeAcrossADuplicate(t *testing.T) {
	s := startServer(t)
	b, js := s.bus(), s.jetstream()
	c := version("db", "1")
	seq := mustPublish(t, b, c, 0)
	// Without the event the expected sequence is right again, so the id decides.
	stream, err := js.Stream(t.Context(), StreamChanges)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), seq); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PublishChange(t.Context(), c, 0); !errors.Is(err, ErrConflict) {
		t.Errorf("got %v, want ErrConflict: what the id stands for is not stored", err)
	}
}

func TestTwoWatchersPublishEachChangeOnce(t *testing.T) {
	s := startServer(t)
	const versions = 50
	var stored, conflicts atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		b := s.bus()
		wg.Go(func() {
			for v := 1; v <= versions; {
				var expected uint64
				have := 0
				last, err := b.Last(t.Context(), "keyturn.v1.prod-eu.secret.shop.db")
				if err == nil {
					expected = last.Seq
					if _, err := fmt.Sscan(last.Event.Extensions()["resourceversion"].(string), &have); err != nil {
						t.Error(err)
						return
					}
				} else if !errors.Is(err, ErrNotFound) {
					t.Error(err)
					return
				}
				if v = max(v, have+1); v > versions {
					return
				}
				c := version("db", fmt.Sprint(v))
				c.Time = time.Now()
				switch _, err := b.PublishChange(t.Context(), c, expected); {
				case err == nil:
					stored.Add(1)
				case errors.Is(err, ErrConflict):
					conflicts.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if stored.Load() != versions {
		t.Errorf("%d changes were stored, want %d; there were %d conflicts", stored.Load(), versions, conflicts.Load())
	}
	seen := make(map[string]bool)
	for _, raw := range messages(t, s.jetstream(), StreamHistory) {
		id := raw.Header.Get("Nats-Msg-Id")
		if seen[id] {
			t.Errorf("HISTORY holds %s twice", id)
		}
		seen[id] = true
	}
	if len(seen) != versions {
		t.Errorf("HISTORY holds %d changes, want %d", len(seen), versions)
	}
}

func TestTombstonesExpireOnChangesOnly(t *testing.T) {
	s := startServer(t)
	b, js := s.bus(), s.jetstream()
	c := version("db", "1")
	c.Verb = VerbDeleted
	mustPublish(t, b, c, 0)
	mustPublish(t, b, version("web", "1"), 0)

	ttls := make(map[string]string)
	for _, stream := range []string{StreamChanges, StreamHistory} {
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
	s := startServer(t)
	b := s.bus()
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	if _, err := b.PublishChange(trace.ContextWithSpanContext(t.Context(), span), version("db", "1"), 0); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{StreamChanges, StreamHistory} {
		header := messages(t, s.jetstream(), stream)[0].Header
		if got := header["traceparent"]; len(got) != 1 || got[0] != "00-01000000000000000000000000000000-0200000000000000-01" {
			t.Errorf("%s: traceparent is %v", stream, got)
		}
		if got := header["ce-traceparent"]; len(got) != 1 || got[0] != change().Trace.Parent {
			t.Errorf("%s: ce-traceparent is %v", stream, got)
		}
	}
}

func TestPublishOutcomes(t *testing.T) {
	for name, publish := range map[string]func(*Bus) []error{
		"one after the other": func(b *Bus) (errs []error) {
			for _, o := range allOutcomes() {
				errs = append(errs, b.PublishOutcomes(t.Context(), o)...)
			}
			return errs
		},
		"all at once": func(b *Bus) []error { return b.PublishOutcomes(t.Context(), allOutcomes()...) },
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t)
			b, js := s.bus(), s.jetstream()
			for range 2 {
				if err := errors.Join(publish(b)...); err != nil {
					t.Fatal(err)
				}
			}
			var changes, history []string
			for _, raw := range messages(t, js, StreamChanges) {
				changes = append(changes, raw.Header["ce-type"][0])
			}
			for _, raw := range messages(t, js, StreamHistory) {
				history = append(history, raw.Header["ce-type"][0])
			}
			if fmt.Sprint(changes) != "[dev.keyturn.rollout.failed.v1]" {
				t.Errorf("CHANGES holds %v, want the last outcome that is neither a skip nor a hold", changes)
			}
			if len(history) != len(allOutcomes()) {
				t.Errorf("HISTORY holds %v, want each outcome once", history)
			}
			stored, err := b.Last(t.Context(), OutcomeSubject(testCluster, outcome().Workload))
			if err != nil {
				t.Fatal(err)
			}
			if o, err := stored.Outcome(); err != nil || o.Verb != VerbFailed {
				t.Errorf("got %+v, %v", o, err)
			}
		})
	}
}

func TestAnOutcomeThatIsRefusedKeepsNoOtherFromBeingPublished(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	foreign, malformed := outcome(), outcome()
	foreign.Cluster, malformed.Workload.Namespace = "other", "Shop"
	errs := b.PublishOutcomes(t.Context(), foreign, outcome(), malformed)
	wantReason(t, errs[0], ReasonForeignCluster)
	wantReason(t, errs[2], ReasonMalformed)
	if errs[1] != nil {
		t.Error(errs[1])
	}
	if n := len(messages(t, s.jetstream(), StreamChanges)); n != 1 {
		t.Errorf("CHANGES holds %d messages, want one", n)
	}
}

func TestOutcomesWithoutAnAnswerAreAllToBePublishedAgain(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	if err := s.jetstream().DeleteStream(t.Context(), StreamChanges); err != nil {
		t.Fatal(err)
	}
	for i, err := range b.PublishOutcomes(t.Context(), allOutcomes()...) {
		skipped := allOutcomes()[i].Verb == VerbSkipped || allOutcomes()[i].Verb == VerbHeld
		if err == nil && !skipped {
			t.Errorf("%s is said to be published", allOutcomes()[i].Verb)
		}
	}
	if n := len(messages(t, s.jetstream(), StreamHistory)); n != len(allOutcomes()) {
		t.Errorf("HISTORY holds %d messages, want %d", n, len(allOutcomes()))
	}
}

func TestTheStateOfAWorkloadIsItsLastOutcomeOnHistory(t *testing.T) {
	no := errors.New("no answer")
	for _, tt := range []struct {
		name string
		errs [3]error
		// states has, for each publication, the index of the one that becomes the state; -1 is none.
		states [3]int
		failed int
	}{
		{name: "all are on HISTORY", states: [3]int{1, 1, -1}},
		{name: "the first is not", errs: [3]error{no, nil, nil}, states: [3]int{-1, -1, -1}, failed: 3},
		{name: "the last is not", errs: [3]error{nil, nil, no}, states: [3]int{-1, -1, -1}, failed: 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var batch []publication
			for i, verb := range []Verb{VerbStarted, VerbCompleted, VerbSkipped} {
				batch = append(batch, publication{outcome: Outcome{Verb: verb}, msg: &nats.Msg{Subject: "a"}, err: tt.errs[i]})
			}
			// Neither another workload nor an outcome that cannot be encoded has a part in it.
			batch = append(batch,
				publication{outcome: Outcome{Verb: VerbFailed}, msg: &nats.Msg{Subject: "b"}},
				publication{outcome: Outcome{Verb: VerbFailed}, err: no},
			)
			chooseStates(batch)
			states, failed := [3]int{-1, -1, -1}, 0
			for i, p := range batch[:3] {
				if p.err != nil {
					failed++
				}
				for j := range batch {
					if p.state == &batch[j] {
						states[i] = j
					}
				}
			}
			if states != tt.states || failed != tt.failed {
				t.Errorf("got the states %v and %d to publish again, want %v and %d", states, failed, tt.states, tt.failed)
			}
			if batch[3].state != &batch[3] || batch[4].state != nil || batch[4].err == nil {
				t.Errorf("got %+v and %+v", batch[3], batch[4])
			}
		})
	}
}

func TestPublishRefuses(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	c := version("db", "1")
	c.Cluster = "other"
	_, err := b.PublishChange(t.Context(), c, 0)
	wantReason(t, err, ReasonForeignCluster)
	o := outcome()
	o.Cluster = "other"
	wantReason(t, errors.Join(b.PublishOutcomes(t.Context(), o)...), ReasonForeignCluster)
	c = version("db", "1")
	c.Fingerprint = "hunter2"
	_, err = b.PublishChange(t.Context(), c, 0)
	wantReason(t, err, ReasonMalformed)
	if n := len(messages(t, s.jetstream(), StreamHistory)); n != 0 {
		t.Errorf("HISTORY holds %d messages", n)
	}
}

func TestLast(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	if _, err := b.Last(t.Context(), "keyturn.v1.prod-eu.secret.shop.none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	ack, err := s.jetstream().Publish(t.Context(), "keyturn.v1.prod-eu.secret.shop.db", []byte("not an event"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := b.Last(t.Context(), "keyturn.v1.prod-eu.secret.shop.db")
	if err != nil || stored.Seq != ack.Sequence {
		t.Fatalf("got %+v, %v", stored, err)
	}
	wantReason(t, stored.Err, ReasonMalformed)
	if _, err := stored.Change(); err == nil {
		t.Error("what is not an event is read as a change")
	}
	if _, err := stored.Outcome(); err == nil {
		t.Error("what is not an event is read as an outcome")
	}
	// It can be superseded nevertheless.
	mustPublish(t, b, version("db", "1"), stored.Seq)
}

// TestHistoryMissesNothing shows why publishers write HISTORY: CHANGES drops superseded events at once, HISTORY has all of
// them.
func TestHistoryMissesNothing(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	const burst, subjects = 1000, 3
	want := make(map[string]bool)
	var last [subjects]uint64
	for i := range burst {
		c := version(fmt.Sprintf("db-%d", i%subjects), fmt.Sprint(i+1))
		last[i%subjects] = mustPublish(t, b, c, last[i%subjects])
		want[b.messageID(c.ID())] = true
	}
	js := s.jetstream()
	for _, raw := range messages(t, js, StreamHistory) {
		delete(want, raw.Header.Get("Nats-Msg-Id"))
	}
	if len(want) != 0 {
		t.Errorf("HISTORY misses %d of %d changes", len(want), burst)
	}
	if n := len(messages(t, js, StreamChanges)); n != subjects {
		t.Errorf("CHANGES holds %d events, want %d", n, subjects)
	}
}

// TestRepublishLosesExpectations is the reason for docs/adr/0002-history-is-written-first.md. If it fails, the server has
// changed, and the decision can be revised.
func TestRepublishLosesExpectations(t *testing.T) {
	s := startServer(t)
	js := s.jetstream()
	for _, config := range []jetstream.StreamConfig{
		{Name: "TARGET", Subjects: []string{"target.>"}},
		{Name: "ORIGIN", Subjects: []string{"origin.>"}, MaxMsgsPerSubject: 1, RePublish: &jetstream.RePublish{Source: "origin.>", Destination: "target.>"}},
	} {
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(data string, expected uint64) uint64 {
		ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "origin.a", Data: []byte(data)}, jetstream.WithExpectLastSequencePerSubject(expected))
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	// An event on another subject makes the sequences of the two streams differ.
	if _, err := js.Publish(t.Context(), "target.other", nil); err != nil {
		t.Fatal(err)
	}
	publish("second", publish("first", 0))
	// The last message expects no sequence: once it is stored, everything before it was processed.
	if _, err := js.Publish(t.Context(), "origin.end", nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the last message is republished", func() bool {
		list := messages(t, js, "TARGET")
		return len(list) > 0 && list[len(list)-1].Subject == "target.end"
	})
	var got []string
	for _, raw := range messages(t, js, "TARGET") {
		if raw.Subject == "target.a" {
			got = append(got, string(raw.Data))
		}
	}
	if fmt.Sprint(got) != "[first]" {
		t.Errorf("the target has %v: republished messages with an expectation used to be refused", got)
	}
}
