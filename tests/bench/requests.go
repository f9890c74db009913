package main

import (
	"context"
	"slices"
	"time"

	"github.com/keyturn/keyturn/tests/testbed"
)

// What is counted of the requests, as results know it.
const (
	requests   = "requests"
	kubeEvents = "kubernetes events"
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

// endCount adds how many requests a contender made for each workload that it rolled since startCount.
func (b *bench) endCount(ctx context.Context, c count, rolled int) error {
	if rolled == 0 {
		return nil
	}
	// An entry is written a moment after the response.
	if err := sleep(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	entries, _, err := b.cp.AuditSince(c.offset)
	if err != nil {
		return err
	}
	counted, kube := countRequests(entries, c.contender.users())
	b.results.add(requests, c.contender, float64(counted)/float64(rolled))
	b.results.add(kubeEvents, c.contender, float64(kube)/float64(rolled))
	return nil
}

// countRequests counts the requests of users, and of these the Kubernetes Events apart. Two are not counted: those about
// the Lease, and watches, which are renewed every few minutes whether anything changes or not.
func countRequests(entries []testbed.AuditEntry, users []string) (counted, kubeEvents int) {
	for _, entry := range testbed.Requests(entries, "") {
		switch {
		case !slices.Contains(users, entry.User), entry.Verb == "watch", entry.Resource == "leases":
		case entry.Resource == "events":
			kubeEvents++
		default:
			counted++
		}
	}
	return counted, kubeEvents
}
