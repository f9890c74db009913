package identity

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// claimTimeout bounds the requests to the stream.
	claimTimeout = 10 * time.Second
	// defaultInterval is the default of Options.Interval.
	defaultInterval = time.Minute
)

// keeper claims or checks the name of a cluster. It is for one goroutine at a time.
type keeper struct {
	cluster  string
	interval time.Duration
	claim    func(ctx context.Context) error
	log      *slog.Logger
	// failing says that the last try failed. Further failures are not logged.
	failing bool
}

// try claims or checks the name once. It returns an error only if another cluster has the name.
func (k *keeper) try(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	err := k.claim(bounded)
	if errors.Is(err, events.ErrClaimed) {
		return err
	}
	if err != nil && ctx.Err() == nil && !k.failing {
		k.log.WarnContext(ctx, "cluster name neither claimed nor checked", "cluster", k.cluster, "err", err, "retry_in", k.interval)
	}
	k.failing = err != nil
	return nil
}

// keep tries at each interval, because the stream may lose the claim, and another cluster may then take the name.
func (k *keeper) keep(ctx context.Context) error {
	tick := time.NewTicker(k.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := k.try(ctx); err != nil {
			return err
		}
	}
}
