// Package election makes one of several programs the leader, by a Lease. It differs from the elector of client-go in when it releases the Lease: only
// after the leader has stopped, so that nobody else leads while it still acts.
package election
