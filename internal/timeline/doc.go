// Package timeline draws rotations as one page of HTML: a change of a source with everything that it led to, on one axis of time, workload by
// workload and cluster by cluster.
//
// The page has no script, and its Content-Security-Policy permits nothing but its own style sheet. Its table says in words what the lanes show, for
// screen readers and for paper. Nothing in an event is trusted: markup escapes every text of it, and its size is bounded here.
package timeline
