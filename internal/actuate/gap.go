package actuate

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
)

const (
	// gapMargin is how long, beside the longest debounce, a leader may take to note what a workload waits for.
	gapMargin = 5 * time.Second
	// writePrecision is that of the times of writes.
	writePrecision = time.Second
)

// gapFrom returns plan.Memory.GapFrom, given when a leader was last known to lead. That is zero if none ever was, and then there is no gap.
func gapFrom(o Options, led time.Time) time.Time {
	if led.IsZero() {
		return o.Now().Add(-writePrecision)
	}
	return led.Add(-o.SettleMax - gapMargin)
}

// lastLed returns when a leader last renewed the Lease, which is zero if there is none. It asks until the API server answers, and returns false if
// the context ended first. Call it before run.
func (e *election) lastLed(ctx context.Context) (at time.Time, answered bool) {
	delays := wait.Backoff{Duration: retryPeriod, Factor: 2, Jitter: 0.1, Steps: 6, Cap: 30 * time.Second}
	for {
		lease, err := e.client.CoordinationV1().Leases(e.namespace).Get(ctx, e.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && lease.Spec.RenewTime == nil:
			return time.Time{}, true
		case err == nil:
			return lease.Spec.RenewTime.Time, true
		case ctx.Err() != nil:
			return time.Time{}, false
		}
		delay := delays.Step()
		e.log.WarnContext(ctx, "lease not readable; reading it again", "retry_in", delay, "err", err)
		if !backoff.Sleep(ctx, delay) {
			return time.Time{}, false
		}
	}
}
