package forcesync

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// annotationSyncedFrom contains status.syncedResourceVersion at the time of the patch. The sync is done when the status has another one.
const annotationSyncedFrom = "keyturn.dev/synced-from"

// repeatAsked returns the repeat of the sync for an event that the annotations of an object request, or -1 if they request none.
func repeatAsked(of *metav1.ObjectMeta, event string) int {
	if forced, ok := externalsecret.ParseForceSync(of.Annotations[externalsecret.AnnotationForceSync]); ok && forced.Event == event {
		return forced.Repeat
	}
	return -1
}

// patch is one merge patch with its syncs and the response.
type patch struct {
	target *metav1.ObjectMeta // the result of Index.target
	syncs  []*pendingSync
	event  string // of the change of the syncs
	body   []byte
	sent   time.Time
	after  *externalsecret.ExternalSecret // from the response; nil if a ClusterExternalSecret was patched
	err    error
}

// newPatch returns the patch of a target. The same event and repeat result in the same annotations, except for annotationSyncedFrom.
func newPatch(to *metav1.ObjectMeta, syncs []*pendingSync, now time.Time) *patch {
	s := syncs[0]
	event, parent := s.change.ID(), s.change.Trace.Parent // The context of our own spans would differ with each attempt.
	annotations := map[string]any{
		externalsecret.AnnotationForceSync: externalsecret.ForceSync{Event: event, Repeat: s.repeat, Traceparent: parent}.String(),
		events.AnnotationCause:             event,
		events.AnnotationTraceparent:       nil,
	}
	if parent != "" {
		annotations[events.AnnotationTraceparent] = parent
	}
	if to.Namespace != "" {
		annotations[annotationSyncedFrom] = s.seen.SyncedVersion
	}
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": to.UID, "annotations": annotations}}) // Texts can always be encoded.
	return &patch{target: to, syncs: syncs, event: event, body: body, sent: now}
}

func (y *Syncer) send(ctx context.Context, p *patch) {
	to, id, resource := p.target, identify(p.syncs[0].seen), externalsecret.ExternalSecrets
	if to.Namespace == "" {
		id, resource = events.Workload{Kind: clusterKind, Name: to.Name}, externalsecret.ClusterExternalSecrets
	}
	ctx, span := y.Tracer.Start(ctx, "force-sync externalsecret", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(append(identityAttributes(id), attribute.Int("keyturn.externalsecrets", len(p.syncs)))...))
	defer span.End()
	ctx, cancel := context.WithTimeout(ctx, kube.PatchTimeout)
	defer cancel()
	obj, err := y.Client.Resource(resource).Namespace(to.Namespace).Patch(ctx, to.Name,
		types.MergePatchType, p.body, metav1.PatchOptions{FieldManager: workload.FieldManager})
	switch {
	case err != nil:
		p.err = fmt.Errorf("patching %s %s: %w", resource.Resource, to.Name, err)
		span.SetStatus(codes.Error, "not patched")
	case to.Namespace != "":
		p.after = externalsecret.Read(obj)
		y.index.putPatched(p.after)
	}
	y.answers <- p
	y.index.alert()
}

// start sends the patch of a sync whose turn it is, which also serves its siblings. If the patch was made before, start follows the sync.
func (y *Syncer) start(ctx context.Context, s *pendingSync) {
	if !y.prepare(ctx, s) {
		return
	}
	to := y.index.target(s.seen)
	asked, isOurs := repeatAsked(to, s.change.ID()), !s.sent.IsZero() || s.failures > 0
	if end := s.lagEnd(); s.seen.RefreshTime.Before(end) && !y.Now().Before(end) {
		s.repeat = lastRepeat
		s.changed = s.changed || asked >= 0 && !isOurs
	}
	if asked >= s.repeat {
		s.repeat = asked
		// The annotations of a ClusterExternalSecret do not contain the version before the sync, because it stands for several ExternalSecrets.
		if s.from, s.certain = to.Annotations[annotationSyncedFrom]; !s.certain || to.Namespace == "" {
			s.from, s.certain = s.seen.SyncedVersion, false
		}
		if !isOurs && s.isSynced() {
			if s.changed = true; !y.awaitLag(s) { // The effect of that sync is unknown.
				y.finish(ctx, s, done, nil)
			}
			return
		}
		y.takeSlot(ctx, s)
		y.follow(ctx, s, y.Now())
		return
	}
	syncs := []*pendingSync{s}
	if to.Namespace == "" {
		syncs = append(syncs, y.siblings(ctx, s)...)
	}
	for _, one := range syncs {
		one.repeat, one.state, one.changed, one.unclear = s.repeat, patching, one.changed && s.repeat == lastRepeat, one.unclear && s.repeat > 0
		one.from, one.certain = one.seen.SyncedVersion, true
		y.takeSlot(ctx, one)
	}
	p := newPatch(to, syncs, y.Now())
	ctx = s.context(context.WithoutCancel(ctx)) // The request is completed even if the Syncer stops.
	y.sending.Go(func() { y.send(ctx, p) })
}

// siblings removes from the queue and returns the other syncs that the patch for s also serves. S takes over their highest repeat.
func (y *Syncer) siblings(ctx context.Context, s *pendingSync) (syncs []*pendingSync) {
	y.each(func(other *pendingSync) {
		if other == s || other.change.Source != s.change.Source || other.state != queued || other.seen.Owner != s.seen.Owner {
			return
		}
		y.turns.Remove(other)
		y.last.Remove(other)
		if y.prepare(ctx, other) {
			syncs = append(syncs, other)
			s.repeat = max(s.repeat, other.repeat)
		}
	})
	return syncs
}

// prepare updates a sync to the current state of its ExternalSecret, and reports whether to patch it. Otherwise, it finishes the sync, or makes it
// wait for the store, or for the operator to try a new ExternalSecret: its author may not be allowed to read the secret, and must not learn when it
// changes.
func (y *Syncer) prepare(ctx context.Context, s *pendingSync) bool {
	es := y.index.get(nameOf(s.seen))
	if es == nil {
		y.finish(ctx, s, gone, nil)
		return false
	}
	s.seen = es
	switch why := s.obstacle(); {
	case why != "":
		y.finish(ctx, s, why, nil)
	case es.Untried():
		y.await(s, untried, y.Now().Add(syncTimeout))
	case s.repeat > 0 && s.repeat < lastRepeat && s.changed && !s.unclear:
		y.finish(ctx, s, done, nil) // The last patch has turned out to be sufficient.
	case y.mustWait(s):
		y.await(s, lagging, s.until)
	default:
		return true
	}
	return false
}

// answered handles the response to a patch. A denial for a change that is superseded does not count, as the patch for the newer one may be allowed.
func (y *Syncer) answered(ctx context.Context, p *patch) {
	for _, s := range p.syncs {
		isStale := p.event != s.change.ID()
		switch {
		case p.err != nil:
			y.retry(ctx, s, p.err, kube.IsDenied(p.err) && !isStale)
			continue
		case p.after != nil && !isStale:
			s.from = p.after.SyncedVersion // The index may not have had the last sync yet.
		}
		s.until = time.Time{}
		if s.sent, s.failures, s.denials = p.sent, 0, 0; isStale {
			y.enqueue(ctx, s)
		} else {
			y.follow(ctx, s, s.sent)
		}
	}
}

func (y *Syncer) retry(ctx context.Context, s *pendingSync, err error, isDenied bool) {
	if isDenied {
		s.denials++
	}
	if s.denials >= kube.MaxDenials {
		y.finish(ctx, s, denied, &events.RejectError{Reason: events.ReasonPatchDenied, Err: err})
		return
	}
	s.failures++
	delay := kube.NthDelay(kube.PatchBackoff(), s.failures)
	y.Log.WarnContext(s.context(ctx), "externalsecret not patched; retrying",
		"externalsecret", s.seen.Name, "namespace", s.seen.Namespace, "attempt", s.failures, "retry_in", delay, "err", err)
	y.host.CountFailedSync(ctx)
	y.returnSlot(ctx, s)
	y.await(s, retrying, y.Now().Add(delay))
}
