package events

import (
	"context"
	"strings"
)

// ConsumeOutcomes is Consume for the outcomes of the cluster. It reads StreamHistory, so it delivers superseded outcomes too. It runs beside Consume
// on the same bus, which reconnects if the server is silent.
//
// A new consumer starts with the next outcome, not with past ones. The server deletes it after 30 days without a reader.
// A message that is not an outcome is logged and terminated. It gets no dead letter, because StreamHistory keeps it.
func (b *Bus) ConsumeOutcomes(ctx context.Context, opts ConsumeOptions, handler func(ctx context.Context, d *Delivery)) error {
	c, err := b.outcomeConsumption(opts, handler)
	if err != nil {
		return err
	}
	return c.run(ctx)
}

func (b *Bus) outcomeConsumption(opts ConsumeOptions, handler func(ctx context.Context, d *Delivery)) (*consumption, error) {
	if len(opts.FilterSubjects) == 0 {
		opts.FilterSubjects = []string{HistorySubject(OutcomeFilter(b.cluster))}
	}
	opts.FromNow, opts.ForgetAfter = true, retention
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	c := b.newConsumption(b.history, opts, handler)
	c.parse, c.beside = func(d *Delivery) error { return d.parseOutcome(b.cluster) }, true
	return c, nil
}

// parseOutcome reads the outcome. It rejects those of other clusters.
func (d *Delivery) parseOutcome(cluster string) error {
	// The codec identifies an event by its subject on CHANGES.
	subject := changesRoot + strings.TrimPrefix(d.subject, historyRoot)
	address, err := ParseSubject(subject)
	if err != nil {
		return err
	}
	if address.Cluster != cluster {
		return rejectf(ReasonForeignCluster, "the event is of cluster %q, want %q", address.Cluster, cluster)
	}
	e, err := FromMsg(subject, d.header, d.data)
	if err != nil {
		return err
	}
	if d.Outcome, err = ParseOutcome(e); err != nil {
		return err
	}
	return validateOutcome(subject, d.Outcome)
}
