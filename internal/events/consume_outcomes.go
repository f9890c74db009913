package events

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// ConsumeOutcomes is Consume for the outcomes of the cluster, which it reads from StreamHistory, so that none is missing that
// was superseded meanwhile. Delivery.Outcome is set instead of Delivery.Change.
//
// A consumer that is new begins with the next outcome, not with those of the past. It is deleted by the server when nobody has
// consumed for 30 days. What cannot be read as an outcome is logged and passed over; it has no
// dead letter, for the stream keeps it.
func (b *Bus) ConsumeOutcomes(ctx context.Context, opts ConsumeOptions, handler func(ctx context.Context, d *Delivery)) error {
	if len(opts.FilterSubjects) == 0 {
		opts.FilterSubjects = []string{HistorySubject(OutcomeFilter(b.cluster))}
	}
	return b.consume(ctx, &consumption{
		stream: b.history, name: StreamHistory, deliver: jetstream.DeliverNewPolicy, unused: keep, opts: opts, handler: handler,
		parse: (*Delivery).parseOutcome,
	})
}

// parseOutcome reads the event and checks that it is an outcome at this cluster.
func (d *Delivery) parseOutcome() error {
	// The codec knows an event by its subject on CHANGES.
	subject := changesRoot + strings.TrimPrefix(d.Subject, historyRoot)
	address, err := ParseSubject(subject)
	if err != nil {
		return err
	}
	if address.Cluster != d.bus.cluster {
		return rejectf(ReasonForeignCluster, "the event is of cluster %q, want %q", address.Cluster, d.bus.cluster)
	}
	if d.Event, err = FromMsg(subject, d.Header, d.data); err != nil {
		return err
	}
	if d.Outcome, err = ParseOutcome(d.Event); err != nil {
		return err
	}
	return ValidateOutcome(subject, d.Outcome)
}
