package events

import (
	"context"
	"fmt"
)

// PublishProjection publishes a projection on StreamHistory. After an error, unless that is a RejectError, it may be called again with the same
// projection. If it is repeated within minutes, the projection is not stored twice.
func (b *Bus) PublishProjection(ctx context.Context, p Projection) error {
	if p.Cluster != b.cluster {
		return rejectf(ReasonForeignCluster, "the projection is of cluster %q, want %q", p.Cluster, b.cluster)
	}
	e, err := p.Event()
	if err != nil {
		return err
	}
	msg, err := ToMsg(e, ProjectionSubject(b.cluster, p.Target))
	if err != nil {
		return err
	}
	taken, ok := b.share.take(ctx, p.Target.Namespace, msg.Size())
	if !ok {
		return nil
	}
	ack, err := b.store(ctx, StreamHistory, HistorySubject(msg.Subject), msg, b.messageID(e.ID()), forSoLong(taken.ttl)...)
	if err != nil || ack.Duplicate {
		taken.giveBack()
	}
	if err != nil {
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}
