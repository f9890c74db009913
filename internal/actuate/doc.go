// Package actuate does something about changes: it finds the workloads that depend on what changed, decides for each what
// the change means to it, and rolls those that need it by one patch.
//
// The guarantee: when an event is acknowledged, every workload that depends on its source has been patched, or needs no
// patch for a reason that was told. An event that comes twice, late, or after its successor changes nothing: what a
// workload was last rolled for stands on the workload itself, written by the patch that rolled it. There is no other state
// that could disagree with it, and everything that waits, waits on the stream.
//
// Ordering: the changes that concern one workload are gathered until it has been quiet for a while, and make one roll, to
// the last content. Between workloads there is no order, but for their waves.
//
// Failure: a workload that cannot be patched is tried again and holds up no other. Where the API server refuses for good,
// the event goes to the dead letters once all the others are done with it.
//
// The parts, along the way of an event:
//
//	references.go, optin.go   what a workload reads, and what it asks to be rolled for
//	index.go                  which workloads a source concerns, without asking anybody
//	plan.go, reason.go        what a change means to a workload: a pure function, and its answers
//	engine.go                 the loop that all of it is done in
//	decide.go, settle.go      gathers, decides, holds back
//	patch.go, apply.go        the one patch
//	follow.go                 the rollout, to its end
//	outcome.go                what is told of it
//	reporter.go, kubeevents.go and how
//
// A secret in a store that External Secrets Operator reads takes another way before that: see internal/forcesync.
package actuate
