package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// claimInterval is the age at which a claim is renewed. The stream of a hub drops a claim after 30 days.
const claimInterval = 7 * 24 * time.Hour

// Claim claims the bus's cluster name for the cluster whose namespace kube-system has the given UID. If another cluster has
// claimed the name, Claim takes it over if that cluster's UID is replaces, or if no other cluster publishes on this NATS. Otherwise, it returns an
// error that wraps ErrClaimed. It renews the cluster's own claim when that is older than claimInterval.
func (b *Bus) Claim(ctx context.Context, uid, replaces string) error {
	for {
		stored, found, err := b.claimed(ctx)
		if err != nil {
			return err
		}
		mine := events.Claim{Cluster: b.cluster, UID: uid, Time: b.now(), Replaces: found.Predecessor(uid, replaces)}
		// A claim from the future was made with a wrong clock.
		if found.UID == uid && mine.Time.Sub(found.Time).Abs() < claimInterval {
			return nil
		}
		if err := b.contest(ctx, found, uid, replaces); err != nil {
			return err
		}
		msg, id, err := b.message(mine.Encode)
		if err != nil {
			return err
		}
		if _, err := b.supersede(ctx, msg, id, "", stored.Seq); !errors.Is(err, ErrConflict) {
			return err
		}
		// Another watcher was faster. Its claim may be for this cluster or for another one.
	}
}

// CheckClaim is Claim without claiming: it returns nil if the name is unclaimed.
func (b *Bus) CheckClaim(ctx context.Context, uid, replaces string) error {
	_, found, err := b.claimed(ctx)
	if err != nil {
		return err
	}
	return b.contest(ctx, found, uid, replaces)
}

// claimed returns the current claim. It is empty if there is none, or if the stored event is unreadable.
func (b *Bus) claimed(ctx context.Context) (events.Stored, events.Claim, error) {
	stored, err := b.Last(ctx, events.ClaimSubject(b.cluster))
	if errors.Is(err, events.ErrNotFound) {
		return events.Stored{}, events.Claim{}, nil
	}
	if err != nil {
		return events.Stored{}, events.Claim{}, err
	}
	claim, err := stored.Claim()
	if err != nil {
		b.logger.WarnContext(ctx, "cannot read the cluster name claim", "subject", stored.Subject, "err", err)
		return stored, events.Claim{}, nil
	}
	return stored, claim, nil
}

// contest returns an error that wraps ErrClaimed if found is the claim of another cluster, unless replaces is the UID of that cluster. On a NATS that
// no other cluster uses, such a claim is only logged: either the volume came from that cluster, or the key of the watcher's NATS user has leaked.
func (b *Bus) contest(ctx context.Context, found events.Claim, uid, replaces string) error {
	if found.UID == "" || found.UID == uid || found.UID == replaces {
		return nil
	}
	changes, err := b.changes.Info(ctx) // The server may be a leaf node of a hub by now.
	if err != nil {
		return fmt.Errorf("reading stream %s: %w", events.StreamChanges, err)
	}
	if changes.Config.Metadata[soleKey] != "" {
		b.logger.ErrorContext(ctx, "another cluster has claimed the name of this one on its own nats; taking it back: unless the volume came "+
			"from that cluster, replace the keys of the nats users", "cluster", b.cluster, "uid", found.UID, "claimed", found.Time)
		return nil
	}
	return fmt.Errorf("%w: %q belongs to the cluster with UID %s, which claimed it last at %s, this cluster has UID %s; "+
		"set another --cluster, or --replaces-cluster=%s if this cluster replaces that one",
		ErrClaimed, b.cluster, found.UID, found.Time.UTC().Format(time.RFC3339), uid, found.UID)
}

// PublishWatched publishes a Watched: every source in the scope that existed at the given time is on the stream. Because the event is a state and not
// a change, it is only on StreamChanges, where the next one supersedes it, or it expires after 30 days.
func (b *Bus) PublishWatched(ctx context.Context, scope events.Scope, at time.Time) error {
	w := events.Watched{Cluster: b.cluster, Time: at.UTC(), Scope: scope}
	msg, id, err := b.message(w.Encode)
	if err != nil {
		return err
	}
	if _, err := b.store(ctx, msg, id, jetstream.WithMsgTTL(retention)); err != nil {
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}

// Watched returns the last Watched of each scope in the bus's cluster. It omits unreadable events.
func (b *Bus) Watched(ctx context.Context) ([]events.Watched, error) {
	var list []events.Watched
	err := b.State(ctx, []string{events.KindFilter(b.cluster, events.KindCluster)}, func(stored events.Stored) error {
		address, err := events.ParseSubject(stored.Subject)
		if err != nil || stored.Err != nil || !strings.HasPrefix(address.Name, events.WatchedPrefix) {
			return nil //nolint:nilerr // it is left out
		}
		w, err := stored.Watched()
		if err != nil {
			b.logger.WarnContext(ctx, "cannot read a cluster.watched event; ignoring it", "subject", stored.Subject, "err", err)
			return nil
		}
		list = append(list, w)
		return nil
	})
	return list, err
}
