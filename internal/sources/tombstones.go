package sources

import (
	"context"
	"time"
)

// tombstoneInterval is how often the ledger drops the deletions that the stream has dropped.
const tombstoneInterval = time.Hour

// forgetTombstones drops those deletions at each interval until ctx is done. Otherwise each source that ever existed would stay in memory.
func forgetTombstones(ctx context.Context, l *ledger, now func() time.Time) {
	tick := time.NewTicker(tombstoneInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.forgetTombstones(now())
		}
	}
}
