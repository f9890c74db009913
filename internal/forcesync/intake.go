package forcesync

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// Take handles an event about a source. It holds the event once for each sync. Span is the span of the event's processing.
func (y *Syncer) Take(ctx context.Context, change events.Change, span trace.Span, event HeldEvent) {
	if isNews(change) {
		y.targetChanged(ctx, change.Source)
	}
	for _, s := range y.asked(ctx, change, span, event) {
		y.consider(ctx, s)
	}
}

// Resume is Take for the last event of a source at the start. It requests only syncs that are unfinished, according to the ExternalSecrets.
func (y *Syncer) Resume(ctx context.Context, change events.Change, span trace.Span, event HeldEvent) {
	for _, s := range y.asked(ctx, change, span, event) {
		if y.lacks(s) {
			y.consider(ctx, s)
		}
	}
}

// Templates lists the sources that templates name. Call Resume for the last event of each, and of each secret in a store.
func (y *Syncer) Templates() (list []events.Source) {
	y.index.mu.RLock()
	defer y.index.mu.RUnlock()
	for key := range y.index.by {
		if source, ok := key.(templateKey); ok {
			list = append(list, events.Source(source))
		}
	}
	return list
}

func (y *Syncer) asked(ctx context.Context, change events.Change, span trace.Span, event HeldEvent) (syncs []*pendingSync) {
	rotation, isRotation := externalsecret.RotationOf(change)
	keys := rotation.Keys()
	if !isRotation && isNews(change) {
		keys = []any{templateKey(change.Source)}
	}
	for _, es := range y.index.find(keys...) {
		if isRead, elsewhere := es.Reads(y.index.store, rotation); isRotation && !isRead {
			y.logElsewhere(ctx, change, es, elsewhere)
			continue
		}
		syncs = append(syncs, &pendingSync{change: change, rotation: rotation, event: event, process: span, seen: es})
	}
	return syncs
}

// maxAddresses limits the logged addresses, and maxAddress their length in characters, because the authors of SecretStores can invent any.
const maxAddresses, maxAddress = 256, 200

// logElsewhere logs, once for a store, that an ExternalSecret reads a changed path at an address that the changed store does not have. It may be
// another store, but if it is this one, its ExternalSecrets are never synced, and nothing else shows why. An empty address is ignored.
func (y *Syncer) logElsewhere(ctx context.Context, change events.Change, reader *externalsecret.ExternalSecret, address string) {
	address = fmt.Sprintf("%.*s", maxAddress, address)
	found := change.UID + " " + address
	if address == "" || y.addresses[found] || len(y.addresses) >= maxAddresses {
		return
	}
	y.addresses[found] = true
	y.Log.InfoContext(ctx, "externalsecret reads a changed path at another address; it is not synced",
		"externalsecret", reader.Name, "namespace", reader.Namespace, "source", change.Source.String(),
		"address", address, "addresses", change.Store.Servers)
}

// isNews reports whether a Secret or ConfigMap has new content, or exists again, in which case the content may be the same as before.
func isNews(change events.Change) bool {
	return change.Verb == events.VerbChanged || change.Verb == events.VerbObserved && change.Previous != ""
}

// lacks reports whether a sync is still needed. The operator retries failed ExternalSecrets itself. A requested sync that took too long was reported.
// A sync without a request that began in the second of the change may have read the old version, and so may any that began before the end of the
// store's lag.
func (y *Syncer) lacks(s *pendingSync) bool {
	es := s.seen
	end, since := s.lagEnd(), s.change.Time
	asked, isEarly := repeatAsked(y.index.target(es), s.change.ID()), es.RefreshTime.Before(end)
	if end.After(since) {
		since = end // The last sync is requested only then.
	}
	switch {
	case y.DryRun || s.obstacle() != "" || es.Untried() || es.Failed:
		return false
	case asked < 0:
		return !es.Ready || !es.RefreshTime.After(s.change.Time) || isEarly
	case asked < lastRepeat && es.Ready && s.isRefreshed():
		return isEarly
	}
	return (!es.Ready || !s.isRefreshed() || isEarly) && y.Now().Sub(since) < syncTimeout
}

// consider begins a sync, unless one is pending for the same source or the ExternalSecret cannot be synced.
func (y *Syncer) consider(ctx context.Context, s *pendingSync) {
	name, source, why := nameOf(s.seen), s.change.Source, s.obstacle()
	if why == "" && y.DryRun {
		why = dryRun
	}
	switch earlier := y.pending[name][source]; {
	case earlier != nil:
		y.join(ctx, earlier, s)
	case why != "":
		y.report(ctx, s, why)
	default:
		if y.pending[name] == nil {
			y.pending[name] = make(map[events.Source]*pendingSync)
		}
		y.pending[name][source] = s
		s.event.Hold()
		y.enqueue(ctx, s)
	}
}

// join makes a pending sync serve the event of later, unless its change is older. If its change is newer, the sync starts over.
func (y *Syncer) join(ctx context.Context, s, later *pendingSync) {
	isSame := later.change.ID() == s.change.ID()
	if !isSame && !events.Newer(later.change.ResourceVersion, s.change.ResourceVersion) {
		return
	}
	later.event.Hold()
	s.event.Release(nil)
	s.event, s.process = later.event, later.process
	if isSame {
		return
	}
	s.superseded = s.superseded || s.state == patching || !s.sent.IsZero()
	s.change, s.rotation = later.change, later.rotation
	s.repeat, s.denials, s.changed, s.unclear = 0, 0, false, false
	if s.state == syncing || s.state == checking || s.state == lagging || s.state == untried {
		y.enqueue(ctx, s) // The other states lead to a patch for the newer change.
	}
}
