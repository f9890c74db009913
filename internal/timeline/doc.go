// Package timeline draws rotations as one page of HTML. A rotation is a change of a source with everything that it led to, on one time axis,
// workload by workload and cluster by cluster.
//
// The page has no script, and its Content-Security-Policy permits nothing but its own style sheet. Its table says in words what the lanes show,
// for screen readers and for paper. Events are not trusted: html/template escapes all their texts, and this package limits their size.
package timeline
