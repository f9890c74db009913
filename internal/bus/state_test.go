package bus

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func readState(t *testing.T, from anyReader, filters []string) map[string]events.Stored {
	t.Helper()
	var state map[string]events.Stored
	testkit.Await(t, "the state is read", func(ctx context.Context) bool {
		state = make(map[string]events.Stored)
		err := from.State(ctx, filters, func(s events.Stored) error {
			state[s.Subject] = s
			return nil
		})
		if err != nil && !IsSilence(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return state
}

func TestStateIsTheLastEventOfEverySubjectThatMatches(t *testing.T) {
	b := sharedServer(t).bus()
	want := make(map[string]uint64)
	for i := range 300 {
		c := version(fmt.Sprintf("s%d", i), "1")
		seq := mustPublish(t, b, c, 0)
		if i%3 == 0 {
			seq = mustPublish(t, b, version(c.Source.Name, "2"), seq)
		}
		want[events.Subject(testCluster, c.Source)] = seq
	}
	mustTell(t, b, outcome())
	state := readState(t, b, events.SourceFilters(testCluster))
	if len(state) != len(want) {
		t.Errorf("got %d events, want %d", len(state), len(want))
	}
	for subject, seq := range want {
		if _, err := state[subject].Change(); err != nil || state[subject].Seq != seq {
			t.Errorf("%s: got sequence %d, %v; want %d", subject, state[subject].Seq, err, seq)
		}
	}
	if state := readState(t, b, []string{events.OutcomeFilter(testCluster)}); len(state) != 1 {
		t.Errorf("got %d outcomes, want 1", len(state))
	}
}

// filtered notes the filters of the consumers of a stream.
type filtered struct {
	jetstream.Stream
	filters [][]string
}

func (f *filtered) OrderedConsumer(ctx context.Context, config jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	f.filters = append(f.filters, config.FilterSubjects)
	return f.Stream.OrderedConsumer(ctx, config)
}

func TestStateHasAConsumerForEachFilterOfWhatIsThere(t *testing.T) {
	b := sharedServer(t).bus()
	app := version("app", "1")
	app.Source.Kind = events.KindConfigMap
	mustPublish(t, b, version("db", "1"), 0)
	mustPublish(t, b, app, 0)
	changes := &filtered{Stream: b.changes}
	b.changes = changes
	secrets, configMaps := events.KindFilter(testCluster, events.KindSecret), events.KindFilter(testCluster, events.KindConfigMap)
	if state := readState(t, b, []string{secrets, events.KindFilter(testCluster, events.KindCertificate), configMaps}); len(state) != 2 {
		t.Errorf("got %v, want both", state)
	}
	want := [][]string{{secrets}, {configMaps}}
	testkit.WantEqual(t, "filters", want, changes.filters)
}
