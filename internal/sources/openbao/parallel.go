package openbao

import "sync"

// concurrency is the number of concurrent requests to a store, for the poller and for the follower each.
const concurrency = 4

// inParallel calls f for 0 to n-1, a few at a time, and waits for all of them.
func inParallel(n int, f func(i int)) {
	var group sync.WaitGroup
	indices := make(chan int)
	for range min(n, concurrency) {
		group.Go(func() {
			for i := range indices {
				f(i)
			}
		})
	}
	for i := range n {
		indices <- i
	}
	close(indices)
	group.Wait()
}
