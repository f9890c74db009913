package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

// stillFor is how long nothing may be published until the demo takes the programs to be done. It is longer than they collect changes.
const stillFor = 3 * time.Second

// stream reads the events that the programs exchange, so that the demo knows when they have processed a change.
type stream struct {
	connection *nats.Conn
	bus        *bus.Bus
	history    jetstream.Stream
}

func openStream(ctx context.Context, url string) (*stream, error) {
	connection, err := bus.Connect(ctx, bus.ConnectOptions{URL: url, Name: "keyturn-demo", Cluster: cluster})
	if err != nil {
		return nil, err
	}
	s := &stream{connection: connection}
	if s.bus, err = bus.Open(ctx, connection, cluster, nil); err != nil {
		s.close()
		return nil, err
	}
	js, err := jetstream.New(connection)
	if err == nil {
		s.history, err = js.Stream(ctx, events.StreamHistory)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("reading stream %s: %w", events.StreamHistory, err)
	}
	return s, nil
}

func (s *stream) close() { s.connection.Close() }

// published returns the sequence of the last event of each source in the namespace and of each secret in a store. Deleted sources are
// left out: cert-manager creates a Secret for each key that it signs, and deletes it afterwards.
func (s *stream) published(ctx context.Context) (map[string]uint64, error) {
	var filters []string
	for _, kind := range []events.Kind{
		events.KindOpenBao, events.KindSecret, events.KindConfigMap, events.KindExternalSecret, events.KindCertificate,
	} {
		filters = append(filters, events.Origins{Cluster: cluster}.Filters(kind, namespace)...)
	}
	sequences := map[string]uint64{}
	err := s.bus.State(ctx, filters, func(stored events.Stored) error {
		change, err := stored.Change()
		if err == nil && change.Verb != events.VerbDeleted {
			sequences[change.Source.String()] = stored.Seq
		}
		return err
	})
	return sequences, err
}

// done waits until each source has a later event than before, and until nothing has been published for a while. It returns the sequences of all
// sources.
func (s *stream) done(ctx context.Context, before map[string]uint64, sources []string) (map[string]uint64, error) {
	var now map[string]uint64
	var pending error
	last, since := uint64(0), time.Now()
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		// Any error may be temporary: NATS is embedded in the actuator, which the demo kills.
		var info *jetstream.StreamInfo
		if now, pending = s.pending(ctx, before, sources); pending == nil {
			info, pending = s.history.Info(ctx)
		}
		if pending == nil && info.State.LastSeq != last {
			last, since = info.State.LastSeq, time.Now()
		}
		return pending == nil && time.Since(since) >= stillFor, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the events of %v: %w (%w)", sources, err, pending)
	}
	return now, nil
}

// pending returns an error that says what is still missing, or nil.
func (s *stream) pending(ctx context.Context, before map[string]uint64, sources []string) (map[string]uint64, error) {
	now, err := s.published(ctx)
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		if now[source] <= before[source] {
			return nil, fmt.Errorf("%s has no event yet", source)
		}
	}
	return now, nil
}

// skipped waits until the actuator has published why a source's last change skipped a workload, and returns that outcome.
func (s *stream) skipped(ctx context.Context, source string, workload events.Workload) (events.Outcome, error) {
	parsed, err := events.ParseSource(source)
	if err != nil {
		return events.Outcome{}, err
	}
	if parsed.Kind != events.KindOpenBao {
		parsed.Namespace = namespace
	}
	var outcome events.Outcome
	subject := events.OutcomeSubject(cluster, workload)
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		stored, err := s.bus.Last(ctx, events.Subject(cluster, parsed))
		if err != nil {
			return false, err
		}
		raw, err := s.history.GetLastMsgForSubject(ctx, events.HistorySubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		outcome, err = events.NewStored(subject, raw.Sequence, raw.Time, raw.Header, raw.Data).Outcome()
		return outcome.Verb == events.VerbSkipped && outcome.Cause == stored.ID(), err
	})
	if err != nil {
		return events.Outcome{}, fmt.Errorf("waiting for the outcome of %s for %s: %w", source, workload, err)
	}
	return outcome, nil
}

// find returns the first matching event of a source since a time, or an error if the stream has none.
func (s *stream) find(ctx context.Context, since time.Time, source events.Source, is func(events.Change) bool) (events.Change, error) {
	var found *events.Change
	query := bus.HistoryQuery{Clusters: []string{cluster}, Kind: source.Kind, Namespace: source.Namespace, Name: source.Name, Since: since}
	err := s.bus.History(ctx, query, func(stored events.Stored) error {
		change, err := stored.Change()
		if err == nil && found == nil && is(change) {
			found = &change
		}
		return err
	})
	switch {
	case err != nil:
		return events.Change{}, err
	case found == nil:
		return events.Change{}, fmt.Errorf("found no matching event of %s", source)
	}
	return *found, nil
}
