// Package order decides who of the workloads of one namespace waits for whom. Whoever waits does so for a workload that is being rolled, for one that
// has failed, or for one that comes before it: by wave, then those that can go first, by pods and name. A rollout ends by itself, and those that have
// failed wait for nobody. So there is always one that may go. See docs/adr/0052-one-order-in-a-namespace.md.
//
// It is pure: it knows no index, no clock and no API server.
package order
