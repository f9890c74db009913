package events

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// purge drops every message of StreamChanges. The server remembers their ids for as long as it detects duplicates.
func purge(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	stream, err := js.Stream(t.Context(), StreamChanges)
	must(t, err)
	must(t, stream.Purge(t.Context()))
}

func TestPublishChangeAgainAfterTheStreamHasLostIt(t *testing.T) {
	s := sharedServer(t)
	b, js := s.bus(), s.jetstream()
	c := version("db", "1")
	last := mustPublish(t, b, c, 0)
	for range 3 {
		purge(t, js)
		seq := mustPublish(t, b, c, 0)
		stored, err := lastOn(t, b, Subject(testCluster, c.Source))
		if err != nil || stored.Seq != seq || seq <= last || stored.Event.ID() != c.ID() {
			t.Fatalf("got sequence %d after %d, but stored is %+v, %v", seq, last, stored, err)
		}
		if again := mustPublish(t, b, c, 0); again != seq {
			t.Errorf("the repetition is at %d, want %d", again, seq)
		}
		last = seq
	}
}

func TestPublishChangeConflictsWithAnEventThatTheStreamHasLost(t *testing.T) {
	s := sharedServer(t)
	b, js := s.bus(), s.jetstream()
	first := mustPublish(t, b, version("db", "1"), 0)
	purge(t, js)
	for _, c := range []Change{version("db", "1"), version("db", "2")} {
		if _, err := answered(t, b, c, first); !errors.Is(err, ErrConflict) {
			t.Errorf("version %s: got %v, want ErrConflict", c.ResourceVersion, err)
		}
	}
}
