package actuate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseName is the name of the Lease: deploy/base/rbac.yaml allows no other.
const leaseName = "keyturn-actuator"

// The times of the Lease, in the proportions of the programs of Kubernetes itself.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// elect leads whenever this actuator holds the Lease, until the context is done.
func (a *Actuator) elect(ctx context.Context) error {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, a.options.LeaseNamespace, leaseName,
		a.options.Client.CoreV1(), a.options.Client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: a.options.Identity})
	if err != nil {
		return fmt.Errorf("making the lease: %w", err)
	}
	for ctx.Err() == nil {
		term := &term{finished: make(chan struct{})}
		if err := term.run(ctx, a, lock); err != nil {
			return err
		}
	}
	return nil
}

// term is one time of trying to lead, and of leading. The elector of client-go begins the leading in a goroutine that it does
// not wait for, and gives the Lease up when its context ends. Here the Lease is given up after the leading has ended, so
// that two never act.
type term struct {
	mu       sync.Mutex
	began    bool
	over     bool
	finished chan struct{}
	failure  error
}

func (t *term) run(ctx context.Context, a *Actuator, lock resourcelock.Interface) error {
	electing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(holding context.Context) {
				if !t.begin() {
					return
				}
				defer close(t.finished)
				defer giveUp()
				a.log.InfoContext(ctx, "became the leader", "identity", a.options.Identity)
				leading, stop := context.WithCancel(holding)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				t.failure = a.lead(leading)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("electing a leader: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		if t.end() {
			giveUp()
		}
	})()
	elector.Run(electing)
	if t.end() {
		return nil
	}
	<-t.finished
	return t.failure
}

// begin tells whether the leading may begin.
func (t *term) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = !t.over
	return t.began
}

// end has the leading not begin any more. It is false where it has begun: then finished is closed when it ends.
func (t *term) end() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	return !t.began
}
