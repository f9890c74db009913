package main

import (
	"context"
	"slices"
	"time"

	"github.com/keyturn/keyturn/tests/testbed"
)

// The names in results of the counts of requests.
const (
	requests      = "requests"
	kubeEvents    = "kubernetes events"
	otherRequests = "other requests"
)

// count is a count of requests that has begun.
type count struct {
	contender contender
	offset    int64
}

func (b *bench) startCount(c contender) (count, error) {
	offset, err := b.cp.AuditEnd()
	return count{contender: c, offset: offset}, err
}

// endCount adds the number of requests that a contender has made since startCount, per rolled workload.
func (b *bench) endCount(ctx context.Context, c count, rolled int) error {
	if rolled == 0 {
		return nil
	}
	// Entries are written a moment after the response.
	if err := testbed.Sleep(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	entries, _, err := b.cp.AuditSince(c.offset)
	if err != nil {
		return err
	}
	kube, others := countRequests(entries, c.contender.users())
	for name, n := range map[string]int{requests: kube + others, kubeEvents: kube, otherRequests: others} {
		b.results.add(name, c.contender, float64(n)/float64(rolled))
	}
	return nil
}

// countRequests counts the requests of users: those for Kubernetes Events, and the others. It ignores requests for the Lease,
// and watches, which are renewed every few minutes even if nothing changes.
func countRequests(entries []testbed.AuditEntry, users []string) (kubeEvents, others int) {
	for _, entry := range testbed.Requests(entries, "") {
		switch {
		case !slices.Contains(users, entry.User), entry.Verb == "watch", entry.Resource == "leases":
		case entry.Resource == "events":
			kubeEvents++
		default:
			others++
		}
	}
	return kubeEvents, others
}
