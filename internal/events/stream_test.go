package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestStreamManifests keeps the files for `nats stream add --config` equal to what Declare declares.
func TestStreamManifests(t *testing.T) {
	for _, config := range Declared(1) {
		var manifest bytes.Buffer
		encoder := json.NewEncoder(&manifest)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		must(t, encoder.Encode(config))
		testkit.Golden(t, "../../deploy/nats/"+strings.ToLower(config.Name)+".json", manifest.Bytes())
	}
}

func TestDeclare(t *testing.T) {
	js := sharedServer(t).jetstream()
	stream, err := js.Stream(t.Context(), StreamChanges)
	must(t, err)
	// The server has ignored no part of the configuration.
	have := stream.CachedInfo().Config
	have.Metadata = nil
	wantEqual(t, "difference", Declared(1)[0], have)
	have.MaxMsgsPerSubject = 5
	if _, err := js.UpdateStream(t.Context(), have); err != nil {
		t.Fatal(err)
	}
	must(t, Declare(t.Context(), js, 1))
	if _, err := verify(t.Context(), js, testCluster); err != nil {
		t.Errorf("what is declared again is not as it must be: %v", err)
	}
}

// Somebody who may update a stream must not be able to keep the actuator from ever starting.
func TestWhatAServerDoesNotTakeBackIsNoReasonNotToStart(t *testing.T) {
	for _, tt := range notTakenBack {
		t.Run(tt.String(), func(t *testing.T) {
			s := sharedServer(t)
			js, altered := s.alter(tt)
			if err := Declare(t.Context(), js, 1); err != nil {
				t.Errorf("the streams are not declared: %v", err)
			}
			wantRepaired(t, js, altered.Name)
		})
	}
}

// mute is a JetStream that does not say what streams there are, as while the servers of one have no leader. Those that update it have.
type mute struct{ jetstream.JetStream }

func (mute) Stream(context.Context, string) (jetstream.Stream, error) {
	return nil, context.DeadlineExceeded
}

func TestAStreamOfWhichNothingIsKnownIsLeftAsItIs(t *testing.T) {
	js := sharedServer(t).jetstream()
	altered := Declared(1)[1]
	altered.MaxMsgs = 1
	if _, err := js.UpdateStream(t.Context(), altered); err != nil {
		t.Fatal(err)
	}
	for _, config := range Declared(1) {
		if err := declare(t.Context(), mute{js}, config); !IsSilence(err) {
			t.Errorf("%s: got %v, want to be told that nobody answers", config.Name, err)
		}
	}
	stream, err := js.Stream(t.Context(), StreamHistory)
	must(t, err)
	if got := stream.CachedInfo().Config.MaxMsgs; got != 1 {
		t.Errorf("max_msgs of HISTORY is %d, want it left at 1", got)
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
		{"the subjects of one cluster are enough", StreamChanges, func(c *jetstream.StreamConfig) { c.Subjects = []string{"keyturn.v1.prod-eu.>"} }, ""},
		{"more subjects do no harm", StreamChanges, func(c *jetstream.StreamConfig) { c.Subjects = []string{"orders.>", "keyturn.v1.*.>"} }, ""},
		{"how long history is kept is the operator's choice", StreamHistory, func(c *jetstream.StreamConfig) { c.MaxAge, c.MaxBytes = time.Hour, 1<<20 }, ""},
		{"compression is the operator's choice", StreamHistory, func(c *jetstream.StreamConfig) { c.Compression = jetstream.S2Compression }, ""},
		{"another cluster's subjects are not ours", StreamChanges, func(c *jetstream.StreamConfig) { c.Subjects = []string{"keyturn.v1.prod-us.>"} }, "CHANGES: subjects is [keyturn.v1.prod-us.>], want one that covers keyturn.v1.prod-eu.>"},
		{"subjects of one depth miss the others", StreamChanges, func(c *jetstream.StreamConfig) { c.Subjects = []string{"keyturn.v1.prod-eu.*"} }, "CHANGES: subjects is"},
		{"a longer pattern covers less", StreamHistory, func(c *jetstream.StreamConfig) { c.Subjects = []string{"keyturn.history.v1.prod-eu.secret.>"} }, "HISTORY: subjects is"},
		{"more than one event a subject is no state", StreamChanges, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 }, "CHANGES: max_msgs_per_subject is 10, want 1"},
		{"without message TTLs tombstones stay", StreamChanges, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false }, "CHANGES: allow_msg_ttl is false, want true"},
		{"a state in memory is lost", StreamChanges, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "CHANGES: storage is Memory, want File"},
		{"a state that ages is forgotten", StreamChanges, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "CHANGES: max_age is 1h0m0s, want 0"},
		{"a limit of messages forgets sources", StreamChanges, func(c *jetstream.StreamConfig) { c.MaxMsgs = 100 }, "CHANGES: max_msgs is 100, want -1"},
		{"a limit of bytes forgets sources", StreamChanges, func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }, "CHANGES: max_bytes is 1048576, want -1"},
		{"a publisher could erase the stream by a header", StreamChanges, func(c *jetstream.StreamConfig) { c.AllowRollup = true }, "CHANGES: allow_rollup_hdrs is true, want false"},
		{"small messages only", StreamChanges, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1024 }, "CHANGES: max_msg_size is 1024, want at least"},
		{"no direct access", StreamChanges, func(c *jetstream.StreamConfig) { c.AllowDirect = false }, "CHANGES: allow_direct is false, want true"},
		{"no acknowledgements", StreamHistory, func(c *jetstream.StreamConfig) { c.NoAck = true }, "HISTORY: no_ack is true, want false"},
		{"a queue is drained by its reader", StreamHistory, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, "HISTORY: retention is WorkQueue, want Limits"},
		{"a full history that refuses new events stops everything", StreamHistory, func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew }, "HISTORY: discard is DiscardNew, want DiscardOld"},
		{"a history of one event a subject is none", StreamHistory, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, "HISTORY: max_msgs_per_subject is 1, want -1"},
		{"a history without message TTLs keeps nothing for an hour", StreamHistory, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false }, "HISTORY: allow_msg_ttl is false, want true"},
		{"a transform moves events where nobody looks", StreamHistory, func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "moved.>"}
		}, "HISTORY: subject_transform is set, want unset"},
		{"dead letters for another cluster only", StreamDeadLetters, func(c *jetstream.StreamConfig) { c.Subjects = []string{"keyturn.deadletter.v1.prod-us.>"} }, "DEADLETTERS: subjects is"},
		{"a stream is missing", StreamDeadLetters, nil, "DEADLETTERS does not exist"},
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
			if err := openAtOnce(t, s.connect()); !errors.Is(err, errStream) {
				t.Errorf("Open returned %v, want errStream", err)
			}
		})
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
	for _, name := range []string{StreamHistory, StreamDeadLetters} {
		must(t, js.DeleteStream(t.Context(), name))
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

// openAtOnce returns the error of Open, which does not wait for streams that do not exist: they may just be being declared.
func openAtOnce(t *testing.T, nc *nats.Conn) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	_, err := Open(ctx, nc, testCluster, slog.New(slog.NewTextHandler(when{"does not exist", cancel}, nil)))
	return err
}

// when is a writer that does something when a text is written.
type when struct {
	text string
	do   func()
}

func (w when) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.do()
	}
	return len(p), nil
}

func TestVerifyReportsEverything(t *testing.T) {
	js := sharedServer(t).jetstream()
	for _, name := range []string{StreamHistory, StreamDeadLetters} {
		must(t, js.DeleteStream(t.Context(), name))
	}
	config := Declared(1)[0]
	config.MaxMsgsPerSubject, config.AllowDirect = 2, false
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	_, err := verify(t.Context(), js, testCluster)
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 4 {
		t.Errorf("got %d lines, want 4:\n%v", len(lines), err)
	}
}

func TestCovers(t *testing.T) {
	tests := []struct {
		pattern, wanted string
		want            bool
	}{
		{">", "a.b.>", true},
		{"a.>", "a.b.>", true},
		{"a.b.>", "a.b.>", true},
		{"a.*.>", "a.b.>", true},
		{"*.*.>", "a.b.>", true},
		{"a.b.c.>", "a.b.>", false},
		{"a.b.*", "a.b.>", false},
		{"a.b", "a.b.>", false},
		{"a.c.>", "a.b.>", false},
		{"a.b.*.>", "a.b.>", false},
		{"a.*", "a.b", true},
		{"a.b", "a.b", true},
		{"a", "a.b", false},
	}
	for _, tt := range tests {
		if got := covers(tt.pattern, tt.wanted); got != tt.want {
			t.Errorf("%s covers %s: got %t", tt.pattern, tt.wanted, got)
		}
	}
}
