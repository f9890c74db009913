package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The times of the Lease are about half of those of kube-controller-manager. After a crash, another actuator leads within leaseDuration and two
// retryPeriods, which is about as long as the stream then has no leader. A leader that cannot renew the Lease stops after renewDeadline, and has the
// rest of leaseDuration to finish its patches. If it stops because the API server is slow, nothing is lost: the next leader continues from the stream
// and the workloads. The price is one request per second from each actuator.
const (
	leaseDuration = 7 * time.Second
	renewDeadline = 4 * time.Second
	retryPeriod   = time.Second
)

// Election makes one of several programs the leader, by a Lease. Unlike the elector of client-go, it releases the Lease only after the leader has
// stopped, so that no other program leads while it still acts.
type Election struct {
	Client          kubernetes.Interface
	Namespace, Name string       // of the Lease
	Identity        string       // the name of this program in the Lease
	Unfit           func() error // returns why this program must not lead now, or nil
	Log             *slog.Logger
}

// Run calls lead each time this program has acquired the Lease, until the context is done.
func (e *Election) Run(ctx context.Context, lead func(context.Context)) error {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, e.Namespace, e.Name,
		e.Client.CoreV1(), e.Client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: e.Identity})
	if err != nil {
		return fmt.Errorf("making the lease: %w", err)
	}
	leadLogged := func(ctx context.Context) {
		e.Log.InfoContext(ctx, "became the leader", "identity", e.Identity)
		lead(ctx)
	}
	for e.await(ctx, true) == nil && ctx.Err() == nil {
		if err := e.runTerm(ctx, lock, leadLogged); err != nil {
			return err
		}
	}
	return nil
}

// runTerm tries to become the leader, and leads until the context is done or this actuator must not lead any more.
func (e *Election) runTerm(ctx context.Context, lock resourcelock.Interface, lead func(context.Context)) error {
	fit, resign := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer resign()
	watching.Go(func() {
		if err := e.await(fit, false); err != nil {
			e.Log.WarnContext(ctx, "leaving the lease to others", "identity", e.Identity, "err", err)
			resign()
		}
	})
	return elect(fit, lock, lead)
}

// await waits until this actuator may lead or, if isFit is false, until it must not, and returns why it must not. It ends with the context.
func (e *Election) await(ctx context.Context, isFit bool) error {
	err := e.Unfit()
	for (err == nil) != isFit && Sleep(ctx, retryPeriod) {
		err = e.Unfit()
	}
	return err
}

// elect makes one attempt to become the leader, and leads if it succeeds. The elector of client-go calls back in a goroutine that it does not wait
// for, and would release the Lease when its context ends or when the Lease cannot be renewed. Here, the Lease is released only after the actuator has
// stopped leading, so that nobody else leads while it acts.
func elect(ctx context.Context, lock resourcelock.Interface, lead func(context.Context)) error {
	electing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	// isDecided is set once it is known whether the actuator leads, and finished is closed once it does not lead, or has stopped.
	var isDecided atomic.Bool
	finished := make(chan struct{})
	end := func() {
		if isDecided.CompareAndSwap(false, true) {
			giveUp()
			close(finished)
		}
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(holding context.Context) {
				if !isDecided.CompareAndSwap(false, true) {
					return
				}
				defer close(finished)
				defer giveUp()
				leading, stop := context.WithCancel(holding)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				lead(leading)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("electing a leader: %w", err)
	}
	defer context.AfterFunc(ctx, end)()
	elector.Run(electing)
	end()
	<-finished
	release(context.WithoutCancel(ctx), lock)
	return nil
}

// release lets another actuator lead at once, if this one has the Lease. If the request fails, the others wait until the Lease expires.
func release(ctx context.Context, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(ctx, renewDeadline)
	defer cancel()
	held, _, err := lock.Get(ctx)
	if err != nil || held.HolderIdentity != lock.Identity() {
		return
	}
	now := metav1.Now()
	_ = lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now, LeaderTransitions: held.LeaderTransitions,
	})
}

// LastLed returns when a leader last renewed the Lease, zero if there is no Lease. It retries until the API server responds, and returns false if the
// context ended first. Call it before Run.
func (e *Election) LastLed(ctx context.Context) (at time.Time, answered bool) {
	delays := wait.Backoff{Duration: retryPeriod, Factor: 2, Jitter: 0.1, Steps: 6, Cap: 30 * time.Second}
	for {
		lease, err := e.Client.CoordinationV1().Leases(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && lease.Spec.RenewTime == nil:
			return time.Time{}, true
		case err == nil:
			return lease.Spec.RenewTime.Time, true
		case ctx.Err() != nil:
			return time.Time{}, false
		}
		delay := delays.Step()
		e.Log.WarnContext(ctx, "cannot read the lease; retrying", "retry_in", delay, "err", err)
		if !Sleep(ctx, delay) {
			return time.Time{}, false
		}
	}
}
