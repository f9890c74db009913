//go:build !race

package actuate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// consumers returns the consumers of the stream.
func consumers(s *scene) []string {
	s.Helper()
	js, err := jetstream.New(s.nc)
	if err != nil {
		s.Fatal(err)
	}
	stream, err := js.Stream(s.Context(), events.StreamChanges)
	if err != nil {
		s.Fatal(err)
	}
	lister := stream.ConsumerNames(s.Context())
	var names []string
	for name := range lister.Name() {
		names = append(names, name)
	}
	if err := lister.Err(); err != nil {
		s.Fatal(err)
	}
	return names
}

func TestADryRunHasAConsumerOfItsOwnThatTheServerForgets(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		actual := s.begin("secret/db")
		actual.stop()
		s.options.DryRun = true
		dry := s.start()
		s.pass(time.Minute)
		dry.stop()
		for _, tt := range []struct {
			after           time.Duration
			actual, dryRuns bool
		}{
			{0, true, true}, {6 * 24 * time.Hour, true, true}, {2 * 24 * time.Hour, true, false},
		} {
			s.pass(tt.after)
			names := consumers(s)
			if got := slices.Contains(names, "actuator-demo"); got != tt.actual {
				s.Errorf("after %s, the consumer is there: %t, want %t: %q", s.elapsed(), got, tt.actual, names)
			}
			if got := slices.Contains(names, "actuator-demo-dry-run"); got != tt.dryRuns {
				s.Errorf("after %s, the consumer of dry runs is there: %t, want %t: %q", s.elapsed(), got, tt.dryRuns, names)
			}
		}
	})
}
