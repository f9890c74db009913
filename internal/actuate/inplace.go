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
	// errUntold is returned if a pod could not be told of a change.
	errUntold = errors.New("not every pod confirmed the reload")
	// errNotYet is returned if it may be told at another attempt.
	errNotYet = errors.New("not every pod reloads yet")
)

// way is how a workload gets changes that roll it.
type way struct {
	// inPlace has its pods told. Else they are replaced, and instead is why, if the workload asks for the other.
	inPlace bool
	instead string
	// refreshed is when their files are new.
	refreshed time.Time
}

const (
	// maxDelays is how often a later change may have the wait for new files begin anew, in times the delay.
	maxDelays = 3
	// tellPause is how long a workload waits for a place to have its pods told.
	tellPause = time.Second
	// maxStarting is how often pods are told of which one is not ready, before they are replaced.
	maxStarting = 6
)

// ways chooses between telling pods of changes and replacing them.
type ways struct {
	// delay is Options.ReloadDelay.
	delay time.Duration
	now   func() time.Time
}

// choose returns how a workload gets the changes of decisions. The API does not show when the kubelet has refreshed the files of a pod, so that it
// is the time which counts: since the watcher saw the last of them, whoever was the leader meanwhile.
func (c ways) choose(p *pending, w *workload.Workload, doing []plan.Decision) way {
	why, ok := plan.InPlace(w, doing)
	switch {
	case !ok:
		return way{instead: why}
	case p.untold != "":
		return way{instead: p.untold}
	}
	chosen := way{inPlace: true}
	for _, decision := range doing {
		if seen := p.changes[decision.Source].change.Time.Add(c.delay); seen.After(chosen.refreshed) {
			chosen.refreshed = seen
		}
	}
	if c.now().Before(chosen.refreshed) && !p.filesSince.IsZero() && chosen.refreshed.After(p.filesSince.Add(maxDelays*c.delay)) {
		return way{instead: "its sources change too often"}
	}
	return chosen
}

// obstacle returns why the pods cannot be told yet.
func (w way) obstacle(now time.Time) obstacle {
	if !w.inPlace || !now.Before(w.refreshed) {
		return obstacle{}
	}
	return obstacle{reason: plan.FilesPending, end: w.refreshed}
}

// untellable returns why the pods of a workload cannot be told yet, if they are to be.
func (d *dispatcher) untellable(p *pending, w *workload.Workload) obstacle {
	why := p.way.obstacle(d.now())
	switch {
	case why.reason != plan.None:
		why.awaits = awaited{workload: p.key} // What others do does not end it.
		if p.filesSince.IsZero() {
			p.filesSince = d.now()
		}
	case why.reason == plan.None && p.way.inPlace && !d.patcher.mayTell(w.ID.Namespace):
		return obstacle{reason: plan.FilesPending, end: d.now().Add(tellPause)}
	}
	return why
}

// tell tells the pods of a workload, and returns how many there are. Unlike a patch, it ends with the context: the next leader tells them again.
func (p *patcher) tell(ctx context.Context, r *roll) (int, error) {
	to := r.workload.InPlace
	ctx, span := p.tracer.Start(trace.ContextWithSpan(ctx, r.span), "reload pods", trace.WithAttributes(workloadAttributes(r.workload.ID)...))
	defer span.End()
	told, err := p.teller.Tell(ctx, inplace.Pods{
		Namespace: r.workload.ID.Namespace, Selector: to.Selector, Controller: to.Controller, Deployment: r.workload.ID.Name,
		Port: to.Endpoint.Port, Path: to.Endpoint.Path, Refreshed: r.way.refreshed,
	})
	switch {
	case errors.Is(err, inplace.ErrNotListed) || errors.Is(err, inplace.ErrStarting) && r.attempts < maxStarting:
		span.SetStatus(codes.Error, "not reloaded yet")
		return told, fmt.Errorf("%w: %w", errNotYet, err)
	case kube.IsMissingRight(err, "list"):
		err = fmt.Errorf("the component reload-in-place, which grants it, is missing: %w", err)
		fallthrough
	case err != nil:
		span.SetStatus(codes.Error, "not reloaded")
		return told, fmt.Errorf("%w: %w", errUntold, err)
	}
	return told, nil
}
