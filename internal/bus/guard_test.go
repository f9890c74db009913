package bus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// guardOf returns a guard that compares only when a test calls Compare, and its log.
func guardOf(s *testServer, declared []jetstream.StreamConfig) (*StreamGuard, *testkit.Log) {
	var log testkit.Log
	return NewStreamGuard(s.jetstream(), testCluster, declared, log.Logger()), &log
}

// TestAStreamThatSomebodyChangesIsRepaired changes each field that a server lets change.
func TestAStreamThatSomebodyChangesIsRepaired(t *testing.T) {
	tests := []struct {
		field string
		alter func(*jetstream.StreamConfig)
	}{
		{"subjects", func(c *jetstream.StreamConfig) { c.Subjects = []string{"keyturn.history.v1.prod-us.>"} }},
		{"max_bytes", func(c *jetstream.StreamConfig) { c.MaxBytes = 1024 }},
		{"max_age", func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = time.Second, time.Second }},
		{"max_msgs_per_subject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }},
		{"no_ack", func(c *jetstream.StreamConfig) { c.NoAck = true }},
		{"duplicate_window", func(c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond }},
		{"sources", func(c *jetstream.StreamConfig) {
			c.Sources = []*jetstream.StreamSource{{Name: events.StreamDeadLetters, FilterSubject: "keyturn.deadletter.>"}}
		}},
		{"allow_rollup_hdrs", func(c *jetstream.StreamConfig) { c.AllowRollup = true }},
		{"subject_transform", func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "moved.>"}
		}},
		{"republish", func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Destination: "copied.>"} }},
	}
	s := sharedServer(t)
	js := s.jetstream()
	want := Declared(1)[1] // HISTORY
	for _, tt := range tests {
		t.Run(tt.field, func(t *testing.T) {
			altered := want
			tt.alter(&altered)
			testkit.Must(t, errIn(js.UpdateStream(t.Context(), altered)))
			guard, log := guardOf(s, Declared(1))
			guard.Compare(t.Context())
			stream, err := js.Stream(t.Context(), want.Name)
			testkit.Must(t, err)
			if left := streamDifferences(stream.CachedInfo().Config, want); len(left) > 0 {
				t.Errorf("it is not repaired: %v", left)
			}
			if got := log.String(); !strings.Contains(got, `"corrected a stream that differed from its declaration" stream=HISTORY field=`+tt.field) {
				t.Errorf("the log does not name the field:\n%s", got)
			}
		})
	}
	guard, log := guardOf(s, Declared(1))
	guard.Compare(t.Context())
	if log.String() != "" {
		t.Errorf("it finds something in streams that are as required:\n%s", log.String())
	}
}

// A server of another process may begin again with an empty volume while its clients stay.
func TestAStreamThatIsLostIsCreatedAgain(t *testing.T) {
	s := sharedServer(t)
	js := s.jetstream()
	testkit.Must(t, js.DeleteStream(t.Context(), events.StreamHistory))
	guard, log := guardOf(s, Declared(1))
	guard.Compare(t.Context())
	stream, err := js.Stream(t.Context(), events.StreamHistory)
	testkit.Must(t, err)
	if left := streamDifferences(stream.CachedInfo().Config, Declared(1)[1]); len(left) > 0 {
		t.Errorf("it is another one: %v", left)
	}
	if !strings.Contains(log.String(), `"created a stream that was lost" stream=HISTORY`) {
		t.Errorf("the log does not say so:\n%s", log)
	}
}

// TestWhatAServerDoesNotTakeBackIsSaid sets what cannot be repaired beside what can.
func TestWhatAServerDoesNotTakeBackIsSaid(t *testing.T) {
	for _, tt := range notTakenBack {
		t.Run(tt.String(), func(t *testing.T) {
			s := sharedServer(t)
			js, altered := s.alter(tt)
			guard, log := guardOf(s, Declared(1))
			now := time.Now()
			guard.now = func() time.Time { return now }
			guard.Compare(t.Context())
			guard.Compare(t.Context())
			said := `msg="stream is not as required, and cannot be repaired" stream=` + altered.Name + ` field=` + tt.field
			if got := strings.Count(log.String(), said); got != 1 || !strings.Contains(log.String(), "delete the claims of its volumes") {
				t.Errorf("it is said %d times, want once:\n%s", got, log.String())
			}
			wantRepaired(t, js, altered.Name)
			now = now.Add(sayAgain)
			guard.Compare(t.Context())
			if got := strings.Count(log.String(), said); got != 2 {
				t.Errorf("after an hour it was said %d times, want twice:\n%s", got, log.String())
			}
		})
	}
}

// A size that declare chooses on a small server is as wrong as any other where there is room.
func TestAStreamIsAsLargeAsItsServerHasRoomFor(t *testing.T) {
	for _, tt := range []struct {
		name, limit string
		have, want  int64
	}{
		{"a sixty-fourth, with room for all", "1GB", historyBytes / smaller / smaller, historyBytes},
		{"a few bytes, with room for an eighth", "100MB", 1024, historyBytes / smaller},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startSmall(t, testkit.StoreDir(t), tt.limit)
			js := s.jetstream()
			altered := Declared(1)
			altered[1].MaxBytes, altered[2].MaxBytes = tt.have, leastBytes
			for _, config := range altered {
				testkit.Must(t, errIn(js.CreateStream(t.Context(), config)))
			}
			guard, log := guardOf(&s.testServer, Declared(1)[1:2])
			guard.Compare(t.Context())
			stream, err := js.Stream(t.Context(), events.StreamHistory)
			testkit.Must(t, err)
			if got := stream.CachedInfo().Config.MaxBytes; got != tt.want {
				t.Errorf("max_bytes is %d, want %d", got, tt.want)
			}
			said := fmt.Sprintf("stream=HISTORY field=max_bytes found=%d required=%d\n", tt.have, tt.want)
			if got := log.String(); strings.Count(got, said) != 1 {
				t.Errorf("got:\n%s\nwant once: %s", got, said)
			}
			guard.Compare(t.Context())
			if got := log.String(); strings.Count(got, "\n") != 1 {
				t.Errorf("it logs what is as large as it can be:\n%s", got)
			}
		})
	}
}

func TestTheSourcesThatDeclareMakesAreNoDifference(t *testing.T) {
	s := sharedServer(t)
	js := s.jetstream()
	sources := StoreSources("hub", []string{"shared"})
	testkit.Must(t, Declare(t.Context(), js, Declared(1, sources...)))
	guard, log := guardOf(s, Declared(1, sources...))
	guard.Compare(t.Context())
	if log.String() != "" {
		t.Errorf("got:\n%s", log.String())
	}
}

// alteration alters a field of a stream.
type alteration struct {
	field string
	// stream is its index in Declared.
	stream int
	alter  func(*jetstream.StreamConfig)
}

// notTakenBack is what a server does not take back.
var notTakenBack = []alteration{
	{"deny_delete", 0, func(c *jetstream.StreamConfig) { c.DenyDelete = true }},
	{"deny_purge", 1, func(c *jetstream.StreamConfig) { c.DenyPurge = true }},
	{"allow_msg_schedules", 0, func(c *jetstream.StreamConfig) { c.AllowMsgSchedules, c.AllowRollup = true, true }},
	{"allow_msg_ttl", 2, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }},
	{"sealed", 0, func(c *jetstream.StreamConfig) { c.Sealed = true }},
}

func (a alteration) String() string {
	return fmt.Sprintf("%s on %s", a.field, Declared(1)[a.stream].Name)
}

// alter alters a stream, and a limit of it that can be repaired.
func (s *testServer) alter(a alteration) (jetstream.JetStream, jetstream.StreamConfig) {
	s.t.Helper()
	altered := Declared(1)[a.stream]
	a.alter(&altered)
	altered.MaxMsgs = 1
	js := s.jetstream()
	testkit.Must(s.t, errIn(js.UpdateStream(s.t.Context(), altered)))
	return js, altered
}

// wantRepaired checks that the limit is as declared.
func wantRepaired(t *testing.T, js jetstream.JetStream, name string) {
	t.Helper()
	stream, err := js.Stream(t.Context(), name)
	testkit.Must(t, err)
	if got := stream.CachedInfo().Config.MaxMsgs; got != -1 {
		t.Errorf("max_msgs of %s is %d: what can be repaired is not", name, got)
	}
}
