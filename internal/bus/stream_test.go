package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestStreamManifests keeps the files for `nats stream add --config` equal to what Declare declares, but for the size of one.
func TestStreamManifests(t *testing.T) {
	write := func(name string, config jetstream.StreamConfig) {
		var manifest bytes.Buffer
		encoder := json.NewEncoder(&manifest)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		testkit.Must(t, encoder.Encode(config))
		testkit.Golden(t, "../../deploy/nats/"+name+".json", manifest.Bytes())
	}
	for _, config := range Declared(1) {
		write(strings.ToLower(config.Name), config)
	}
	write("changes-limited", limited(256<<20))
}

// limited is StreamChanges for an account that demands the size of each stream. When it is full it refuses what is new.
func limited(bytes int64) jetstream.StreamConfig {
	config := Declared(1)[0]
	config.MaxBytes, config.Discard = bytes, jetstream.DiscardNew
	return config
}

func TestDeclare(t *testing.T) {
	js := sharedServer(t).jetstream()
	stream, err := js.Stream(t.Context(), events.StreamChanges)
	testkit.Must(t, err)
	// The server has ignored no part of the configuration.
	have := stream.CachedInfo().Config
	have.Metadata = nil
	testkit.WantEqual(t, "difference", Declared(1)[0], have)
	have.MaxMsgsPerSubject = 5
	testkit.Must(t, errIn(js.UpdateStream(t.Context(), have)))
	testkit.Must(t, Declare(t.Context(), js, Declared(1)))
	if _, err := verify(t.Context(), js, testCluster); err != nil {
		t.Errorf("what is declared again is not as it must be: %v", err)
	}
}

// A server that turns out to be a leaf node only later is declared anew from the same configurations.
func TestSoleReturnsOtherStreams(t *testing.T) {
	streams := Declared(1)
	if sole := Sole(streams); sole[0].Metadata[soleKey] == "" || streams[0].Metadata != nil {
		t.Errorf("got %v of %v, want that only what is returned has it", sole[0].Metadata, streams[0].Metadata)
	}
}

// Somebody who may update a stream must not be able to keep the actuator from ever starting.
func TestWhatAServerDoesNotTakeBackIsNoReasonNotToStart(t *testing.T) {
	for _, tt := range notTakenBack {
		t.Run(tt.String(), func(t *testing.T) {
			s := sharedServer(t)
			js, altered := s.alter(tt)
			if err := Declare(t.Context(), js, Declared(1)); err != nil {
				t.Errorf("the streams are not declared: %v", err)
			}
			wantRepaired(t, js, altered.Name)
		})
	}
}

func TestVerify(t *testing.T) {
	tests := []struct {
		name   string
		stream string
		alter  func(*jetstream.StreamConfig)
		// want is part of the one line of the error. Empty means no error.
		want string
	}{
		{"the subjects of one cluster are enough", events.StreamChanges, func(c *jetstream.StreamConfig) { c.Subjects = []string{"keyturn.v1.prod-eu.>"} }, ""},
		{"how long history is kept is the operator's choice", events.StreamHistory, func(c *jetstream.StreamConfig) { c.MaxAge, c.MaxBytes = time.Hour, 1<<20 }, ""},
		{"more of each object is the operator's choice, too", events.StreamHistory, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 }, ""},
		{"less of an object is not", events.StreamHistory, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, "max_msgs_per_subject is 1, want 50000"},
		{"another cluster's subjects are not ours", events.StreamChanges, func(c *jetstream.StreamConfig) { c.Subjects = []string{"keyturn.v1.prod-us.>"} }, "CHANGES: subjects is [keyturn.v1.prod-us.>], want one that covers keyturn.v1.prod-eu.>"},
		{"more than one event a subject is no state", events.StreamChanges, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 }, "CHANGES: max_msgs_per_subject is 10, want 1"},
		{"without message TTLs tombstones stay", events.StreamChanges, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false }, "CHANGES: allow_msg_ttl is false, want true"},
		{"a state in memory is lost", events.StreamChanges, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "CHANGES: storage is Memory, want File"},
		{"a state that ages is forgotten", events.StreamChanges, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "CHANGES: max_age is 1h0m0s, want 0"},
		{"a publisher could erase the stream by a header", events.StreamChanges, func(c *jetstream.StreamConfig) { c.AllowRollup = true }, "CHANGES: allow_rollup_hdrs is true, want false"},
		{"a state of a certain size refuses what is new when it is full", events.StreamChanges, func(c *jetstream.StreamConfig) { *c = limited(1 << 20) }, ""},
		{"a state without a size may be declared to refuse what is new", events.StreamChanges, func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew }, ""},
		{"a state that is full drops that of others", events.StreamChanges, func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }, "CHANGES: discard is DiscardOld, want DiscardNew: with a max_bytes of 1048576, it would drop the state of some sources"},
		{"a state that has no room for one event", events.StreamChanges, func(c *jetstream.StreamConfig) { *c = limited(20_000) }, "CHANGES: max_bytes is 20000, want 557056"},
		{"a state of so many sources", events.StreamChanges, func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 }, "CHANGES: max_msgs is 1000, want 0"},
		{"a state for so many readers", events.StreamChanges, func(c *jetstream.StreamConfig) { c.MaxConsumers = leastConsumers }, ""},
		{"a state for fewer readers than there are", events.StreamChanges, func(c *jetstream.StreamConfig) { c.MaxConsumers = 8 }, "CHANGES: max_consumers is 8, want 16"},
		{"a history that is full stops everything", events.StreamHistory, func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew }, "HISTORY: discard is DiscardNew, want DiscardOld"},
		{"a queue is drained by its reader", events.StreamHistory, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, "HISTORY: retention is WorkQueue, want Limits"},
		{"a transform moves events where nobody looks", events.StreamHistory, func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "moved.>"}
		}, "HISTORY: subject_transform is {> moved.>}, want <nil>"},
		{"a stream is missing", events.StreamDeadLetters, nil, "DEADLETTERS does not exist"},
	}
	s := sharedServer(t)
	js := s.jetstream()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, config := range Declared(1) {
				if err := js.DeleteStream(t.Context(), config.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
					t.Fatal(err)
				}
			}
			for _, config := range Declared(1) {
				if config.Name == tt.stream {
					if tt.alter == nil {
						continue
					}
					tt.alter(&config)
				}
				createStream(t, js, config)
			}
			err := errorOf(t, func() error {
				_, err := verify(t.Context(), js, testCluster)
				return err
			})
			if tt.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, errStream) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tt.want)
			}
		})
	}
}

func TestOpenRefusesAServerThatDoesNotTakeTheLargestEvent(t *testing.T) {
	const account = `
		jetstream { max_file: 2G }
		accounts { SMALL { jetstream: enabled, limits { max_payload: 65536 }, users: [{ user: SMALL, password: a }] } }`
	for _, tt := range []struct{ config, user, want string }{
		{config: "max_payload: 65536", want: "max_payload is 65536, want 557056 or more"},
		{config: "max_payload: 524288", want: "max_payload is 524288, want 557056 or more"},
		{config: account, user: "SMALL", want: "max_payload is 65536, want 557056 or more"},
	} {
		s := startWith(t, testkit.StoreDir(t), tt.config)
		if tt.user != "" {
			s.as(tt.user)
		}
		s.declare()
		nc := s.connect()
		err := errorOf(t, func() error {
			_, err := Open(t.Context(), nc, testCluster, nil)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line with %q", err, tt.want)
		}
	}
}

// createStream creates a stream. The server removes the folder of a deleted stream some time later, and rejects a new stream of
// the same name until then.
func createStream(t *testing.T, js jetstream.JetStream, config jetstream.StreamConfig) {
	t.Helper()
	const errCodeStoreFailed jetstream.ErrorCode = 10049
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := js.CreateStream(t.Context(), config)
		var answer *jetstream.APIError
		switch {
		case err == nil:
			return
		case !errors.As(err, &answer) || answer.ErrorCode != errCodeStoreFailed:
			t.Fatal(err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

func TestOpenWaitsForStreamsThatAreBeingDeclared(t *testing.T) {
	s := sharedServer(t)
	js := s.jetstream()
	for _, name := range []string{events.StreamHistory, events.StreamDeadLetters} {
		testkit.Must(t, js.DeleteStream(t.Context(), name))
	}
	waits := make(chan struct{}, 100)
	logger := slog.New(slog.NewTextHandler(signal(waits), nil))
	nc := s.connect()
	opened := make(chan error, 1)
	go func() {
		for {
			began := time.Now()
			_, err := Open(t.Context(), nc, testCluster, logger)
			if !errors.Is(err, errStream) || time.Since(began) < declaredWait {
				opened <- err
				return // otherwise it has waited, and creating the streams takes longer
			}
		}
	}()
	testkit.Receive(t, "it waits", waits)
	for _, config := range Declared(1)[1:] {
		createStream(t, js, config)
	}
	if err := testkit.Receive(t, "the streams are opened", opened); err != nil {
		t.Errorf("got %v", err)
	}
}

// signal is a writer that reports each write on a channel.
type signal chan<- struct{}

func (s signal) Write(p []byte) (int, error) {
	s <- struct{}{}
	return len(p), nil
}
