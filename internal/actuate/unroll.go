package actuate

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// isDenied reports whether the API server denies a patch, in what it answers or in what it does, or the Job that it is to start; or whether a
// Job of someone else is in its way.
func isDenied(err error) bool {
	for _, denial := range []error{workload.ErrStripped, workload.ErrUnstarted, workload.ErrNameTaken} {
		if errors.Is(err, denial) {
			return true
		}
	}
	return kube.IsDenied(err)
}

// unroll corrects the record of a workload that a patch wrote without rolling it, until that succeeds, someone else has written it, or the
// context is done, and returns the error of the patch. The state is that in the response, and the error is what is wrong with it.
func (p *patcher) unroll(ctx context.Context, r *task, after *workload.Workload, err error) error {
	id := r.workload.ID
	stripped := fmt.Errorf("patching %s in namespace %s: %w", id, id.Namespace, err)
	patch, err := r.kind.Patch(after, workload.Write{
		Rolled: after.Unrolled(r.content, r.workload.Rolled), Before: r.workload,
	})
	if err != nil {
		return errors.Join(stripped, err)
	}
	for delays := kube.PatchBackoff(); ; {
		obj, err := r.kind.Objects(p.clients, id.Namespace).Patch(ctx, id.Name, patch)
		if err == nil {
			if corrected, ok := p.index.Read(r.kind, obj); ok {
				p.index.Answer(corrected, false)
			}
			p.index.Uncount(after, r.workload)
			return stripped
		}
		if kube.HasChanged(err) {
			p.index.Answer(after, false)
			return stripped
		}
		if !backoff.Sleep(ctx, delays.Step()) {
			p.index.Answer(after, false)
			return errors.Join(stripped, fmt.Errorf("correcting the record of %s in namespace %s: %w", id, id.Namespace, err))
		}
	}
}
