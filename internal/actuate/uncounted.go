package actuate

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// apply sends a patch. If admission refuses one that counts a roll, apply sends it once more without the count: the policy of an earlier release,
// which did not count, must not stop all rolls. Uncounted is then the refusal, and nil otherwise. Both attempts share the time limit of one patch,
// because others rely on it.
func (p *patcher) apply(ctx context.Context, r *roll) (obj runtime.Object, uncounted, err error) {
	objects := r.kind.Objects(p.clients, r.workload.ID.Namespace)
	obj, err = objects.Patch(ctx, r.workload.ID.Name, r.patch)
	if errors.Is(err, workload.ErrUnrecorded) || !apierrors.IsForbidden(err) || !kube.IsDenied(err) || !r.workload.Counts(r.write) {
		return obj, nil, err // What is unrecorded is done: a Job runs.
	}
	write := r.write
	write.Uncounted = true
	patch, madeErr := r.kind.Patch(r.workload, write)
	if madeErr != nil {
		return obj, nil, err
	}
	rolled, againErr := objects.Patch(ctx, r.workload.ID.Name, patch)
	switch {
	case againErr == nil, errors.Is(againErr, workload.ErrUnrecorded):
		return rolled, err, againErr
	case kube.IsDenied(againErr):
		return obj, nil, err // It was not the count.
	}
	return nil, nil, againErr
}

// warnUncounted says once for a kind that rolls cannot be counted on its workloads.
func (c *completion) warnUncounted(ctx context.Context, r *roll, err error) {
	if c.uncounted[r.kind.Name] {
		return
	}
	c.uncounted[r.kind.Name] = true
	c.log.WarnContext(ctx, "an admission policy refuses the annotation keyturn.dev/rolls; rolls are counted in memory only; update the policy",
		"workload", r.workload.ID.String(), "namespace", r.workload.ID.Namespace, "err", err)
}
