// Package actuate carries out what changes mean to workloads. It finds the workloads that depend on a changed source, asks internal/plan
// what the change means to each, and sends the one patch that rolls the workload or records the change.
//
// Guarantee: the last change of each source and the record on each workload say what a workload is to be rolled for, whoever leads. The patch that
// rolls a workload also records what it was rolled for, so there is no other state that could disagree with it. What the two do not show, because
// there is no record yet, is noted on a workload that waits.
//
// Ordering: the changes of one workload are gathered in its debounce window and lead to one roll, to the last content. Within a
// namespace, workloads have an order by waves, for a canary and after a failure. Namespaces take turns: a workload waits for workloads of other
// namespaces only if there is no free slot.
//
// Failure: a patch that fails or is denied is retried with backoff until it succeeds, and holds up no other workload. That it is denied is told once.
//
// The loop (loop.go) calls parts that own their state and do not know the loop. In the order in which an event passes through them:
//
//	dirty.go, intake.go             takes an event to the workloads that depend on its source; it is kept for as long as something waits
//	debounce.go, pending.go         the debounce window
//	dispatcher.go, holding.go       decides what is due, and holds what must wait
//	admission.go                    what a roll has to wait for: besidereloader.go, slots.go, pace.go, and the others of its namespace
//	orders.go, peers.go             the snapshots from which internal/order decides who of a namespace waits for whom, and who has failed
//	inplace.go                      whether pods are asked to reload instead of being replaced
//	patcher.go, task.go             sends the patch
//	completion.go                   follows, releases or retries
//	decider.go                      what is remembered for each decision, and what was told of rolls that are held or refused
//	rollouts.go, following.go, endings.go   follow a rollout to its end; shadows.go continues with the Jobs that others have deleted
//	resume.go, earlier.go           continues with the rollouts of an earlier leader, and reads what that has told and started
//	notes.go                        writes on workloads, without rolling them, what the next leader must find there: that a rollout has failed,
//	                                that a pause has begun; and reports what needs no patch, and has it recorded
//	owing.go, records.go, reverts.go   what they wait for, what their records lack, and that a roll was reverted, which is repeated later
//	outbox.go, kubeevents.go        report outcomes and problems
//	rejecter.go                     dead-letters events that cannot be read
//
// Nothing else asks the stream for a change: state.go has the last one of each source, in every term and between them, and what there was when this
// actuator began to read. A Follower fills it, beside the loop. actuator.go finds out since when nobody may have led before that.
//
// Four words: a workload with changes is pending, and is gathered, held or due; a task is its patch; a rollout is what follows, until the new pods
// are ready; an outcome is what is reported.
//
// The loop waits for one thing after the other. A workload that has changed is reviewed by admission, rollouts, debounce and notes, in this order;
// intake compares it with its sources if it may have come to want others. The result of a patch goes to the dispatcher, and then rollouts reviews the
// workload. Every five seconds, admission, notes and rollouts look at what changes merely with time. After each of these, unless too many outcomes
// wait to be published, intake takes what has become of sources, then the dispatcher starts patches, and then notes and forcesync do what they can.
//
// build.go assembles the parts for each term as the leader, and has what they share. internal/inventory knows the workloads, in every
// term and between them, and tells dirty.go when one has changed, as state.go does when a source has. internal/forcesync syncs the ExternalSecrets
// that read a changed secret in a store.
package actuate
