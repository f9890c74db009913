package forcesync

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// patcher sends patches, each on its own goroutine, which puts the answer into the index and the inbox.
type patcher struct {
	client dynamic.Interface
	tracer trace.Tracer
	now    func() time.Time
	index  *Index
	inbox  *inbox

	running sync.WaitGroup
}

// start sends a patch. The request is completed even if ctx ends in the meantime.
func (p *patcher) start(ctx context.Context, what patch) {
	ctx = what.syncs[0].newest().context(context.WithoutCancel(ctx))
	p.running.Go(func() { p.inbox.addAnswer(p.send(ctx, what)) })
}

// stop waits for the patches that are being sent, and drops their answers.
func (p *patcher) stop() {
	p.running.Wait()
	p.inbox.end()
}

func (p *patcher) send(ctx context.Context, what patch) answer {
	spanCtx, span := p.tracer.Start(ctx, "force-sync externalsecret", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(patchAttributes(what)...))
	defer span.End()
	callCtx, cancel := context.WithTimeout(spanCtx, kube.PatchTimeout)
	defer cancel()
	to, result := what.target, answer{patch: what, sent: p.now()}
	obj, err := p.client.Resource(to.resource).Namespace(to.namespace).Patch(callCtx, to.name,
		types.MergePatchType, what.body, metav1.PatchOptions{FieldManager: workload.FieldManager})
	switch {
	case err != nil:
		result.err = fmt.Errorf("patching %s %s: %w", to.resource.Resource, to.name, err)
		span.SetStatus(codes.Error, "not patched")
	case !to.isCluster():
		result.after = externalsecret.Read(obj)
		p.index.putAnswer(result.after)
	}
	return result
}

func patchAttributes(what patch) []attribute.KeyValue {
	id := identify(what.syncs[0].seen)
	if what.target.isCluster() {
		id = events.Workload{Kind: clusterKind, Name: what.target.name}
	}
	return append(identityAttributes(id), attribute.Int("keyturn.externalsecrets", len(what.syncs)))
}
