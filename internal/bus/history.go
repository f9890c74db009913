package bus

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// HistoryQuery selects events of the history. An empty field matches everything.
type HistoryQuery struct {
	Clusters []string // the configured names of clusters
	// Kind, Namespace and Name are compared with the subject. The name of an outcome is <workload kind>-<name>.
	Kind      events.Kind
	Namespace string
	Name      string
	Since     time.Time // excludes events that were stored earlier; zero means no limit
	Follow    bool      // continues with new events as they are published, until the context is done
}

// subjects returns the filter subjects, one for each cluster, with a wildcard for each empty field.
func (q HistoryQuery) subjects(root string) []string {
	clusters := q.Clusters
	if len(clusters) == 0 {
		clusters = []string{"*"}
	}
	filters := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		address := events.Address{Cluster: cluster, Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}
		tokens := strings.Split(strings.TrimPrefix(address.Subject(), events.ChangesRoot), ".")
		for i, part := range []string{cluster, string(q.Kind), q.Namespace, q.Name} {
			if part == "" {
				tokens[i] = "*"
			}
		}
		filters = append(filters, root+strings.Join(tokens, "."))
	}
	return filters
}

// History calls fn for each event that matches the query, oldest first. An event has the subject that it had on StreamChanges, and the sequence that
// it has on StreamHistory. If fn returns an error, History returns it unchanged. With Follow, History returns nil when the context is done.
func (r *Reader) History(ctx context.Context, query HistoryQuery, fn func(events.Stored) error) error {
	config := jetstream.OrderedConsumerConfig{FilterSubjects: query.subjects(r.historyRoot), DeliverPolicy: jetstream.DeliverAllPolicy}
	if !query.Since.IsZero() {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &query.Since
	}
	next := uint64(1)
	each := func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error {
		next = meta.Sequence.Stream + 1
		return fn(r.stored(msg, meta))
	}
	// Existing events are read first, because only read notices within a second that its request for messages was lost.
	if err := r.read(ctx, r.history, config, each); err != nil || !query.Follow {
		return err
	}
	if next > 1 {
		config.DeliverPolicy, config.OptStartTime, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, nil, next
	}
	if err := r.follow(ctx, r.history, config, each); ctx.Err() == nil {
		return err
	}
	return nil
}

// LastOutcomes calls fn for the last outcome of each workload of a cluster in the history, with its subject and sequence there.
func (r *Reader) LastOutcomes(ctx context.Context, cluster string, fn func(events.Stored) error) error {
	query := HistoryQuery{Clusters: []string{cluster}, Kind: events.KindRollout}
	return r.read(ctx, r.history, jetstream.OrderedConsumerConfig{
		FilterSubjects: query.subjects(r.historyRoot), DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	}, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error { return fn(r.stored(msg, meta)) })
}
