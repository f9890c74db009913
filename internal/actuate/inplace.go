package actuate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/inplace"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

var (
	// errNotReloaded is returned if a pod could not be asked to reload, or did not confirm the reload.
	errNotReloaded = errors.New("not every pod confirmed the reload")
	// errNotYet is returned if another attempt may succeed.
	errNotYet = errors.New("not every pod reloads yet")
	// errStopped is returned if a user has stopped rolls of the workload after the decision to ask its pods.
	errStopped = errors.New("the workload may not be rolled now")
)

// maxStarting is how often pods are asked to reload while one of them is not ready, before they are replaced.
const maxStarting = 6

// reload asks the pods of a workload to reload and returns their number. Unlike a patch, it ends with the context: the next leader asks again.
func (p *patcher) reload(ctx context.Context, r *task) (int, error) {
	to := r.workload.InPlace
	ctx, span := p.options.Tracer.Start(trace.ContextWithSpan(ctx, r.span), "reload pods", trace.WithAttributes(workloadAttributes(r.workload.ID)...))
	defer span.End()
	reloaded, err := p.pods.Reload(ctx, inplace.Pods{
		Namespace: r.workload.ID.Namespace, Selector: to.Selector, Controller: to.Controller, Deployment: r.workload.ID.Name,
		Port: to.Endpoint.Port, Path: to.Endpoint.Path, Refreshed: r.way.refreshed,
		Begin: func() error { return p.stopped(r.key()) },
	})
	switch {
	case errors.Is(err, errStopped) || errors.Is(err, inplace.ErrNotListed) || errors.Is(err, inplace.ErrStarting) && r.attempts < maxStarting:
		span.SetStatus(codes.Error, "not reloaded yet")
		return reloaded, fmt.Errorf("%w: %w", errNotYet, err)
	case kube.IsMissingRight(err, "list"):
		err = fmt.Errorf("the component reload-in-place, which grants it, is missing: %w", err)
		fallthrough
	case err != nil:
		span.SetStatus(codes.Error, "not reloaded")
		return reloaded, fmt.Errorf("%w: %w", errNotReloaded, err)
	}
	return reloaded, nil
}

// stopped returns errStopped if users do not allow a roll of the workload. A patch that rolls checks this itself; a request to pods cannot.
func (p *patcher) stopped(key workload.Key) error {
	w := p.index.Get(key)
	if w == nil {
		return nil // Its pods end, too.
	}
	if gate := plan.GateOf(w.In(p.namespaces.Get(key.Namespace)), time.Time{}, p.now()); gate.Reason != plan.None {
		return fmt.Errorf("%w: %s", errStopped, gate.Reason)
	}
	return nil
}
