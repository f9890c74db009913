package events

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// HistoryQuery says which part of the history is read. Empty fields leave nothing out.
type HistoryQuery struct {
	// Clusters are the clusters whose events are read.
	Clusters []string
	// Kind, Namespace and Name are those of the subject. The name of an outcome is "<workload kind>-<name>".
	Kind      Kind
	Namespace string
	Name      string
	// Since is the time of the first event. Zero means the oldest that is kept.
	Since time.Time
	// Follow says that reading goes on with what is published later, until the context is done.
	Follow bool
}

// subjects are the filters of the query, one for each cluster. Each part is a token, and what is left out is any.
func (q HistoryQuery) subjects(root string) []string {
	clusters := q.Clusters
	if len(clusters) == 0 {
		clusters = []string{"*"}
	}
	filters := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		address := Address{Cluster: cluster, Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}
		tokens := strings.Split(strings.TrimPrefix(address.Subject(), changesRoot), ".")
		for i, part := range []string{cluster, string(q.Kind), q.Namespace, q.Name} {
			if part == "" {
				tokens[i] = "*"
			}
		}
		filters = append(filters, root+strings.Join(tokens, "."))
	}
	return filters
}

// History hands the events that match the query to fn, the oldest first, each as it was on StreamChanges but for its
// sequence, which is that of the history. An error of fn ends it and is returned as it is. Following ends with nil when the
// context is done.
func (r *Reader) History(ctx context.Context, query HistoryQuery, fn func(Stored) error) error {
	config := jetstream.OrderedConsumerConfig{
		FilterSubjects: query.subjects(r.historyRoot), DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	if !query.Since.IsZero() {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &query.Since
	}
	next := uint64(1)
	each := func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error {
		next = meta.Sequence.Stream + 1
		return fn(newStored(r.subject(msg.Subject()), meta.Sequence.Stream, meta.Timestamp, msg.Headers(), msg.Data()))
	}
	err := r.read(ctx, r.history, config, each)
	if err != nil || !query.Follow {
		return err
	}
	if next > 1 {
		config.DeliverPolicy, config.OptStartTime, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, nil, next
	}
	if err = follow(ctx, r.history, config, each); ctx.Err() != nil {
		err = nil // whoever follows has seen enough
	}
	return err
}

// follow hands on what comes, until ctx is done or something is wrong for good.
func follow(ctx context.Context, stream jetstream.Stream, config jetstream.OrderedConsumerConfig,
	fn func(jetstream.Msg, *jetstream.MsgMetadata) error,
) error {
	failed := func(err error) error {
		return fmt.Errorf("following stream %s: %w", stream.CachedInfo().Config.Name, err)
	}
	consumer, err := stream.OrderedConsumer(ctx, config)
	if err != nil {
		return failed(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return failed(err)
	}
	stop := context.AfterFunc(ctx, messages.Stop)
	defer func() {
		stop()
		messages.Stop()
	}()
	for {
		msg, err := messages.Next()
		if err != nil {
			return failed(err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return failed(err)
		}
		if err := fn(msg, meta); err != nil {
			return err
		}
	}
}
